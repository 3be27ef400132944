package inventory

import (
	"fmt"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
)

// Sharing is what the devices of a slice have to share: counter sets, what each device
// consumes of them, and the capacities of devices of which several claims can have
// a share. It is zero where there is nothing of that. Slices of all nodes of a kind
// share alike, so each is kept once, encoded.
type Sharing struct {
	encoded unique.Handle[string]
}

// SharingOf encodes what the devices of a slice have to share.
func SharingOf(spec *resourcev1.ResourceSliceSpec) Sharing {
	kept := resourcev1.ResourceSliceSpec{SharedCounters: spec.SharedCounters}
	for i := range spec.Devices {
		device := &spec.Devices[i]
		shared := isShared(device)
		if !shared && len(device.ConsumesCounters) == 0 {
			continue
		}
		reduced := resourcev1.Device{Name: device.Name, ConsumesCounters: device.ConsumesCounters}
		if shared {
			reduced.AllowMultipleAllocations, reduced.Capacity = device.AllowMultipleAllocations, device.Capacity
		}
		kept.Devices = append(kept.Devices, reduced)
	}
	if len(kept.SharedCounters)+len(kept.Devices) == 0 {
		return Sharing{}
	}
	data, err := kept.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	return Sharing{unique.Make(string(data))}
}

func isShared(device *resourcev1.Device) bool {
	return device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations
}

// decodeSpec returns the counter sets, and the devices that have something to share.
func (s Sharing) decodeSpec() *resourcev1.ResourceSliceSpec {
	spec := &resourcev1.ResourceSliceSpec{}
	if s == (Sharing{}) {
		return spec
	}
	if err := spec.Unmarshal([]byte(s.encoded.Value())); err != nil {
		panic(fmt.Sprintf("decode what was encoded: %v", err))
	}
	return spec
}
