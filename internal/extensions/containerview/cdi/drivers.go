package cdi

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
)

// Drivers answers for the drivers of a node: for real ones by their specs, and for all
// others as Drivers says.
type Drivers struct {
	containerview.Drivers

	// Returned are the CDI devices that a real driver has returned for an allocated device.
	// It returns false where none has.
	Returned func(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, bool)
	// Specs reads the specs of the node. Those that it returns beside an error are used.
	Specs func() (Specs, error)
	// Host, if there is one, is where a file is that a spec mounts.
	Host func(path string) string
	// ReadMetadata, if there is one, reads a file with device metadata that a spec mounts.
	ReadMetadata func(path string) (string, error)
}

// Injections lists what is injected for each device.
func (d *Drivers) Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	var all []containerview.Injection
	for i, result := range results {
		injections, err := d.injectionsFor(pod, claim, results[i:i+1])
		if err != nil {
			return nil, fmt.Errorf("device %s of driver %s: %w", result.Device, result.Driver, err)
		}
		all = append(all, injections...)
	}
	return all, nil
}

func (d *Drivers) injectionsFor(pod *corev1.Pod, claim *resourcev1.ResourceClaim, one []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	ids, returned := d.Returned(claim, one[0])
	if !returned {
		return d.Drivers.Injections(pod, claim, one)
	}
	if len(ids) == 0 {
		return nil, nil // so nobody looks for specs
	}
	specs, unread := d.Specs()
	injections, err := specs.Injections(ids)
	if err != nil {
		return nil, errors.Join(unread, err) // the device may be in what cannot be read
	}
	for i := range injections {
		if err := d.completeMounts(&injections[i]); err != nil {
			return nil, err
		}
	}
	return injections, nil
}

// completeMounts says where the files of mounts are, and what is in those with device metadata.
func (d *Drivers) completeMounts(injection *containerview.Injection) error {
	for i := range injection.Mounts {
		mount := &injection.Mounts[i]
		if d.ReadMetadata != nil && containerview.IsMetadataPath(mount.ContainerPath) {
			content, err := d.ReadMetadata(mount.HostPath)
			if err != nil {
				return fmt.Errorf("read device metadata: %w", err)
			}
			injection.MetadataFiles = append(injection.MetadataFiles, containerview.MetadataFile{Path: mount.ContainerPath, Content: content})
		}
		if d.Host != nil {
			mount.HostPath = d.Host(mount.HostPath)
		}
	}
	return nil
}
