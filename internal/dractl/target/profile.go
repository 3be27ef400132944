package target

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/kustomize"
)

const (
	profilesDir  = "profiles"
	templateFile = "template.yaml"
	classFile    = "deviceclass.yaml"
)

// profiles has for the names of the catalogue their directories. A profile within a profile
// has both names.
var profiles = sync.OnceValues(func() (map[string]string, error) {
	dirs := map[string]string{}
	err := fs.WalkDir(kustomize.Profiles, profilesDir, func(file string, _ fs.DirEntry, err error) error {
		if err == nil && path.Base(file) == templateFile {
			dir := path.Dir(file)
			dirs[strings.ReplaceAll(strings.TrimPrefix(dir, profilesDir+"/"), "/", "-")] = dir
		}
		return err
	})
	return dirs, err
})

// ProfileNames lists the catalogue.
func ProfileNames() ([]string, error) {
	dirs, err := profiles()
	return slices.Sorted(maps.Keys(dirs)), err
}

// Complete completes the last part of a target with the names of the catalogue. A file is a
// target, too.
func Complete(_ *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := ProfileNames() // a failure shows when the target is read
	before := typed[:strings.LastIndex(typed, ",")+1]
	var found []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(before+name, typed) {
			found = append(found, before+name)
		}
	}
	return found, cobra.ShellCompDirectiveDefault
}

// readProfile reads the DeviceClasses and the templates of a directory of the catalogue.
func readProfile(name, dir string) ([]documents.Document, error) {
	templates, err := kustomize.Profiles.ReadFile(path.Join(dir, templateFile))
	if err != nil {
		return nil, err
	}
	classes, err := readClasses(dir)
	return append(documents.Split(name, classes), documents.Split(name, templates)...), err
}

func profileHas(file string) bool {
	_, err := fs.Stat(kustomize.Profiles, file)
	return err == nil
}

// readClasses reads the DeviceClasses of a directory, and those of the components
// that its kustomization names.
func readClasses(dir string) ([]byte, error) {
	var all [][]byte
	if file := path.Join(dir, classFile); profileHas(file) {
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
		if component = path.Join(dir, component); !profileHas(path.Join(component, templateFile)) && profileHas(component) {
			inner, err := readClasses(component)
			if err != nil {
				return nil, err
			}
			all = append(all, inner)
		}
	}
	return bytes.Join(slices.DeleteFunc(all, func(data []byte) bool { return len(data) == 0 }), []byte("\n---\n")), nil
}
