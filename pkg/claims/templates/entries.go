package templates

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/claims/plan"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// conditionReady is the condition that AllocatedDeviceStatus asks for of a
// driver that has configured the device.
const (
	conditionReady = "Ready"
	reasonPrepared = "Prepared"
)

// Entries are what a claim is to show: of each device whose driver has a template what
// the template says, and nothing of others, or of those that are not asked to prepare.
func (d *Driver) Entries(claim *resourcev1.ResourceClaim, pods []*corev1.Pod) (*plan.Entries, error) {
	want := &plan.Entries{Claim: claim}
	seen := map[plan.DeviceID]bool{}
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		id := plan.ResultID(&results[i])
		if !d.Has(results[i].Driver) || plan.SkipsPrepare(claim, results[i].Driver) || seen[id] {
			continue
		}
		seen[id] = true
		template, err := d.lookup.Template(&results[i])
		if err != nil {
			return nil, err
		}
		if !template.ClaimStatus.Writes() {
			continue
		}
		report, err := d.render(claim, &results[i], template, pods)
		if err != nil {
			return nil, err
		}
		want.Devices = append(want.Devices, newEntry(&results[i], template, report))
		want.NamePods = want.NamePods || template.ClaimStatus.UsesPods
	}
	return want, nil
}

func (d *Driver) render(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template, pods []*corev1.Pod) (*devices.Report, error) {
	allocated := &devices.Allocated{
		Node:   d.lookup.Node(),
		Result: result,
		Config: configOf(claim, result),
		Claim:  devices.Object{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
		Pods:   objectsOf(pods),
	}
	if template.ClaimStatus.UsesDevice {
		device, err := d.lookup.Device(result)
		if err != nil {
			return nil, err
		}
		allocated.Device = device
	}
	report, err := template.ClaimStatus.Render(allocated)
	if err != nil {
		return nil, fmt.Errorf("render template %s for device %s: %w", template.Name, result.Device, err)
	}
	return report, nil
}

// configOf lists the opaque parameters for the driver of a result and its
// request. The scheduler puts those of the class before those of the claim
// (DeviceAllocationResult.Config); so does kwok-dra, whatever allocated.
func configOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) []runtime.RawExtension {
	configs := resourceclaim.ConfigForResult(claim.Status.Allocation.Devices.Config, *result)
	slices.SortStableFunc(configs, func(a, b resourcev1.DeviceAllocationConfiguration) int {
		return cmp.Compare(precedence(a.Source), precedence(b.Source))
	})
	parameters := []runtime.RawExtension{}
	for _, config := range configs {
		if config.Opaque.Driver == result.Driver {
			parameters = append(parameters, config.Opaque.Parameters)
		}
	}
	return parameters
}

func precedence(source resourcev1.AllocationConfigSource) int {
	if source == resourcev1.AllocationConfigSourceClass {
		return 0
	}
	return 1
}

func newEntry(result *resourcev1.DeviceRequestAllocationResult, template *devices.Template, report *devices.Report) resourcev1.AllocatedDeviceStatus {
	entry := plan.EntryFor(result)
	entry.Data, entry.NetworkData = report.Data, report.NetworkData
	if template.ClaimStatus.Ready {
		entry.Conditions = []metav1.Condition{{
			Type: conditionReady, Status: metav1.ConditionTrue, Reason: reasonPrepared, Message: "device is prepared",
		}}
	}
	return entry
}

// objectsOf names Pods for templates, in the order of their names.
func objectsOf(pods []*corev1.Pod) []devices.Object {
	objects := make([]devices.Object, len(pods))
	for i, pod := range pods {
		objects[i] = devices.Object{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
	}
	slices.SortFunc(objects, func(a, b devices.Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return objects
}
