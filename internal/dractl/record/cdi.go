package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview/cdi"
)

// readCDIDevices returns what the devices in the specs of a folder do to a container, by id. What a spec does
// for all of its devices comes first.
func readCDIDevices(folder string) (map[string][]any, error) {
	specs, err := cdi.Read("/", folder) // what the user may read
	if err != nil {
		return nil, fmt.Errorf("read --cdi: %w", err)
	}
	all := map[string][]any{}
	for i := range specs {
		spec := &specs[i]
		for k := range spec.Devices {
			device := &spec.Devices[k]
			for _, edits := range []json.RawMessage{spec.ContainerEdits, device.ContainerEdits} {
				part, err := decodeEdits(edits)
				if err != nil {
					return nil, fmt.Errorf("read CDI spec %s: %w", spec.File, err)
				}
				if len(part) > 0 {
					all[spec.ID(device)] = append(all[spec.ID(device)], part)
				}
			}
		}
	}
	return all, nil
}

// decodeEdits keeps integers whole.
func decodeEdits(edits json.RawMessage) (map[string]any, error) {
	if len(edits) == 0 {
		return nil, nil
	}
	var decoded map[string]any
	decoder := json.NewDecoder(bytes.NewReader(edits))
	decoder.UseNumber()
	return decoded, decoder.Decode(&decoded)
}
