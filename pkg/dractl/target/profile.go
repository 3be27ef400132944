package target

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/kustomize"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
)

const (
	profilesDir  = "profiles"
	templateFile = "template.yaml"
	classFile    = "deviceclass.yaml"
)

// ProfileNames lists the catalogue. A profile within a profile has both names.
func ProfileNames() ([]string, error) {
	var names []string
	err := fs.WalkDir(kustomize.Profiles, profilesDir, func(file string, _ fs.DirEntry, err error) error {
		if err == nil && path.Base(file) == templateFile {
			dir := strings.TrimPrefix(path.Dir(file), profilesDir+"/")
			names = append(names, strings.ReplaceAll(dir, "/", "-"))
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// readProfile reads the DeviceClasses and the templates of a profile of the catalogue.
func readProfile(name string) ([]documents.Document, error) {
	names, err := ProfileNames()
	if err != nil {
		return nil, err
	}
	dir := path.Join(profilesDir, name)
	for _, outer := range names {
		if inner, ok := strings.CutPrefix(name, outer+"-"); ok && !exists(path.Join(dir, templateFile)) {
			dir = path.Join(profilesDir, outer, inner)
		}
	}
	templates, err := kustomize.Profiles.ReadFile(path.Join(dir, templateFile))
	if err != nil {
		return nil, err
	}
	classes, err := readClasses(dir)
	return append(documents.Split(name, classes), documents.Split(name, templates)...), err
}

func exists(file string) bool {
	_, err := fs.Stat(kustomize.Profiles, file)
	return err == nil
}

// readClasses reads the DeviceClasses of a directory, and those of the components
// that its kustomization names.
func readClasses(dir string) ([]byte, error) {
	var all [][]byte
	if file := path.Join(dir, classFile); exists(file) {
		data, err := kustomize.Profiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	var kustomization struct {
		Components []string `json:"components"`
	}
	data, err := kustomize.Profiles.ReadFile(path.Join(dir, "kustomization.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &kustomization)
	}
	if err != nil {
		return nil, fmt.Errorf("read profile %s: %w", dir, err)
	}
	for _, component := range kustomization.Components {
		if component = path.Join(dir, component); !exists(path.Join(component, templateFile)) && exists(component) {
			inner, err := readClasses(component)
			if err != nil {
				return nil, err
			}
			all = append(all, inner)
		}
	}
	return bytes.Join(slices.DeleteFunc(all, func(data []byte) bool { return len(data) == 0 }), []byte("\n---\n")), nil
}
