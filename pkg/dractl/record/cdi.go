package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// cdiSpec is a file of the Container Device Interface.
type cdiSpec struct {
	Kind           string         `json:"kind"`
	ContainerEdits map[string]any `json:"containerEdits"`
	Devices        []struct {
		Name           string         `json:"name"`
		ContainerEdits map[string]any `json:"containerEdits"`
	} `json:"devices"`
}

// cdiDevices are what the devices in the specs of a folder do to a container, by id. What a spec
// does for each of its devices comes first.
func cdiDevices(folder string) (map[string][]any, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read --cdi: %w", err)
	}
	all := map[string][]any{}
	for _, entry := range entries {
		if extension := filepath.Ext(entry.Name()); extension != ".json" && extension != ".yaml" {
			continue
		}
		spec, err := readSpec(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		for _, device := range spec.Devices {
			parts := []any{spec.ContainerEdits, device.ContainerEdits}
			all[spec.Kind+"="+device.Name] = slices.DeleteFunc(parts, func(part any) bool { return len(part.(map[string]any)) == 0 })
		}
	}
	return all, nil
}

// readSpec reads a spec. One that the driver has just removed has no devices.
func readSpec(path string) (*cdiSpec, error) {
	spec := &cdiSpec{}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return spec, nil
	}
	if err == nil {
		err = yaml.Unmarshal(content, spec, func(decoder *json.Decoder) *json.Decoder { decoder.UseNumber(); return decoder })
	}
	if err != nil {
		return nil, fmt.Errorf("read CDI spec %s: %w", path, err)
	}
	return spec, nil
}
