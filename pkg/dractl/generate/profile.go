package generate

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/kustomize"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

const (
	profilesDir  = "profiles"
	templateFile = "template.yaml"
	classFile    = "deviceclass.yaml"
)

// profileNames lists the catalogue. A profile within a profile has both names.
func profileNames() ([]string, error) {
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

// profile is one of the catalogue.
type profile struct {
	name      string
	templates []byte
	classes   []byte
}

// readProfile reads a profile of the catalogue.
func readProfile(name string) (*profile, error) {
	names, err := profileNames()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		hint := "list them with --list-profiles"
		if nearest := cmp.Or(suggest.Part(name, names), suggest.Nearest(name, names)); nearest != "" {
			hint = "did you mean " + nearest + "?"
		}
		return nil, fmt.Errorf("there is no profile %q: %s", name, hint)
	}
	dir := path.Join(profilesDir, name)
	for _, outer := range names {
		if inner, ok := strings.CutPrefix(name, outer+"-"); ok && !exists(path.Join(dir, templateFile)) {
			dir = path.Join(profilesDir, outer, inner)
		}
	}
	p := &profile{name: name}
	if p.templates, err = kustomize.Profiles.ReadFile(path.Join(dir, templateFile)); err != nil {
		return nil, err
	}
	p.classes, err = readClasses(dir)
	return p, err
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

// objects are the DeviceClasses and the templates.
func (p *profile) objects() ([]*unstructured.Unstructured, error) {
	all := append(documents.Split(p.name, p.classes), documents.Split(p.name, p.templates)...)
	decoded, err := documents.Objects(all)
	objects := make([]*unstructured.Unstructured, len(decoded))
	for i := range decoded {
		objects[i] = decoded[i].Unstructured
	}
	return objects, err
}
