package injections

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Templates answers for the drivers of one node that have templates. It implements
// containerview.Drivers.
type Templates struct {
	*templates.Driver
}

// Injections lists what the drivers with templates have a runtime inject into a
// container that has allocated devices of a claim.
func (t *Templates) Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	i := &injector{Templates: t, pod: pod, claim: claim, known: map[string]bool{}}
	for _, result := range results {
		if !t.Has(result.Driver) || plan.SkipsPrepare(claim, result.Driver) {
			continue
		}
		if err := i.addResult(result); err != nil {
			return nil, fmt.Errorf("device %s of driver %s: %w", result.Device, result.Driver, err)
		}
	}
	return i.made, nil
}

// Device is an allocated device as it is published, or nil where no template has it.
func (t *Templates) Device(result *resourcev1.DeviceRequestAllocationResult) *resourcev1.Device {
	if !t.Has(result.Driver) {
		return nil
	}
	device, err := t.Lookup.Device(result)
	if err != nil {
		return nil
	}
	return device
}

// injector makes the injections of one claim into the containers of one Pod.
type injector struct {
	*Templates

	pod   *corev1.Pod
	claim *resourcev1.ResourceClaim
	known map[string]bool
	made  []containerview.Injection
}

// addResult adds what is injected for a device, and before that what is injected for its claim and
// its request, unless it is there.
func (i *injector) addResult(result *resourcev1.DeviceRequestAllocationResult) error {
	template, err := i.Lookup.Template(result)
	if err != nil {
		return err
	}
	edits := editsOf(template.ResourcePoolTemplateSpec)
	id := fmt.Sprintf("%s %s", template.Name, i.claim.UID)
	if err := i.applyOnce(id, edits.perClaim, func(c *container) error { return i.applyOfDriver(c, result.Driver, "") }); err != nil {
		return err
	}
	id += " " + result.Request
	if err := i.applyOnce(id, edits.perRequest, func(c *container) error { return i.applyOfDriver(c, result.Driver, result.Request) }); err != nil {
		return err
	}
	if template.ContainerEdits != nil {
		if err := i.addMetadata(template.ContainerEdits.DeviceMetadata, result); err != nil {
			return err
		}
	}
	device := facts.ResultID(result)
	id += fmt.Sprintf(" %s %s %s", device.Pool, device.Device, device.Share)
	return i.applyOnce(id, edits.perDevice, func(c *container) (err error) {
		c.Result, c.Config = result, templates.ParametersFor(i.claim, result)
		c.Device, err = i.Lookup.Device(result)
		return err
	})
}

// applyOnce renders edits, unless they are there.
func (i *injector) applyOnce(id string, edits editsPart, fill func(*container) error) error {
	if edits.source == nil || i.known[id] {
		return nil
	}
	i.known[id] = true
	seen := &container{
		Node:  i.Lookup.Node,
		Claim: claimData{Object: devices.Object{Name: i.claim.Name, Namespace: i.claim.Namespace, UID: i.claim.UID}},
		Pod:   devices.Object{Name: i.pod.Name, Namespace: i.pod.Namespace, UID: i.pod.UID},
	}
	seen.Claim.AdminAccess = slices.ContainsFunc(i.claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		return result.AdminAccess != nil && *result.AdminAccess
	})
	if err := fill(seen); err != nil {
		return err
	}
	rendered, err := edits.renderEdits(seen)
	if err != nil {
		return err
	}
	i.made = append(i.made, containerview.Injection{ID: id, Edits: *rendered})
	return nil
}

// applyOfDriver gives a container all that a driver has allocated to the claim, or to one request
// of it.
func (i *injector) applyOfDriver(c *container, driver, request string) error {
	for k := range i.claim.Status.Allocation.Devices.Results {
		result := &i.claim.Status.Allocation.Devices.Results[k]
		if result.Driver != driver || request != "" && result.Request != request {
			continue
		}
		device, err := i.Lookup.Device(result)
		if err != nil {
			return err
		}
		c.Devices = append(c.Devices, deviceData{Device: device, Result: result})
		if request != "" {
			c.Request, c.Config = request, templates.ParametersFor(i.claim, result)
		}
	}
	if request == "" {
		c.Config = templates.ParametersOf(i.claim.Status.Allocation.Devices.Config, driver)
	}
	return nil
}
