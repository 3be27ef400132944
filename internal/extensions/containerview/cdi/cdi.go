package cdi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
	"github.com/kwok-dra/kwok-dra/internal/util/namedfile"
)

// Spec is a file of the Container Device Interface.
type Spec struct {
	// File is the name of the file.
	File    string `json:"-"`
	Version string `json:"cdiVersion"`
	Kind    string `json:"kind"`
	// ContainerEdits are made once for all devices of the spec.
	ContainerEdits json.RawMessage `json:"containerEdits"`
	Devices        []Device        `json:"devices"`
}

// Device is a device in a spec.
type Device struct {
	Name           string          `json:"name"`
	ContainerEdits json.RawMessage `json:"containerEdits"`
}

// ID is how the kubelet and container runtimes name a device.
func (s *Spec) ID(device *Device) string {
	return s.Kind + "=" + device.Name
}

// Limits of a folder. The spec of a node with eight GPUs and all their partitions has 100 kB.
const (
	mostEntries = 10_000
	mostInFile  = 1 << 20
	mostInAll   = 16 << 20
)

// Files returns the paths of the specs in a folder.
func Files(folder string) (sets.Set[string], error) {
	entries, err := untrusted.ReadDir(folder, mostEntries)
	if err != nil {
		return nil, fmt.Errorf("list CDI specs: %w", err)
	}
	files := sets.New[string]()
	for _, entry := range entries {
		if ending := filepath.Ext(entry.Name()); ending == ".json" || ending == ".yaml" {
			files.Insert(filepath.Join(folder, entry.Name()))
		}
	}
	return files, nil
}

// Specs are the specs of a folder.
type Specs []Spec

// Read reads the specs in a folder, in the order of their names. A file that the driver has just
// removed is passed over. The drivers of a node share the folder, so the error names each file that
// is no spec, and the specs in all others are there: as container runtimes do it.
//
// A symbolic link may lead to another file below root, such as to one that the driver keeps elsewhere
// in the folder of its node, and nowhere else: kwok-dra may read what a driver may not.
func Read(root, folder string) (Specs, error) {
	files, err := Files(folder)
	if err != nil {
		return nil, err
	}
	var specs Specs
	var errs []error
	left := mostInAll
	for _, file := range sets.List(files) {
		content, err := untrusted.ReadFileIn(root, file, int64(min(mostInFile, left)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, namedfile.ErrTooLarge) && left < mostInFile:
			return specs, errors.Join(append(errs, fmt.Errorf("read CDI specs: those up to %s have more than %d bytes: %w", filepath.Base(file), mostInAll, err))...)
		case err != nil:
			errs = append(errs, fmt.Errorf("read CDI spec: %w", err))
			continue
		}
		left -= len(content)
		spec := Spec{File: filepath.Base(file)}
		if err := yaml.Unmarshal(content, &spec); err != nil || spec.Version == "" {
			errs = append(errs, fmt.Errorf("CDI spec %s has no cdiVersion, or is no YAML", spec.File))
			continue
		}
		specs = append(specs, spec)
	}
	return specs, errors.Join(errs...)
}

// findDevice returns the device with an id and its spec, or nil.
func (s Specs) findDevice(id string) (*Spec, *Device) {
	for i := range s {
		for k := range s[i].Devices {
			if s[i].ID(&s[i].Devices[k]) == id {
				return &s[i], &s[i].Devices[k]
			}
		}
	}
	return nil, nil
}

// Check returns an error that names each device that no spec has.
func (s Specs) Check(ids []string) error {
	var errs []error
	for _, id := range ids {
		if _, device := s.findDevice(id); device == nil {
			errs = append(errs, fmt.Errorf("no spec of %d in the folder of CDI specs has device %s", len(s), id))
		}
	}
	return errors.Join(errs...)
}

// Injections returns what a runtime injects for devices: the edits of each device's spec, once, and then
// those of the device (InjectDevices in internal/extensions/containerview/cdi of container-device-interface). It returns variables,
// mounts and device nodes only.
func (s Specs) Injections(ids []string) ([]containerview.Injection, error) {
	if err := s.Check(ids); err != nil {
		return nil, err
	}
	var injections []containerview.Injection
	for _, id := range ids {
		spec, device := s.findDevice(id)
		ofSpec, err := newInjection("CDI spec "+spec.File, spec.ContainerEdits)
		if err != nil {
			return nil, err
		}
		ofDevice, err := newInjection("CDI device "+id, device.ContainerEdits)
		if err != nil {
			return nil, err
		}
		injections = append(injections, ofSpec, ofDevice)
	}
	return injections, nil
}

func newInjection(id string, edits json.RawMessage) (containerview.Injection, error) {
	injection := containerview.Injection{ID: id}
	if len(edits) == 0 {
		return injection, nil
	}
	if err := json.Unmarshal(edits, &injection.Edits); err != nil {
		return injection, fmt.Errorf("read containerEdits of %s: %w", id, err)
	}
	return injection, nil
}
