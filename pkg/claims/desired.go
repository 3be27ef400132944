package claims

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// conditionReady is the condition that AllocatedDeviceStatus asks for of a
// driver that has configured the device.
const (
	conditionReady = "Ready"
	reasonPrepared = "Prepared"
)

// desired is what a claim is to show of the devices that are prepared.
type desired struct {
	claim   *resourcev1.ResourceClaim
	entries []resourcev1.AllocatedDeviceStatus
	// namesPods says that the entries name the Pods, and change with them.
	namesPods bool
}

// deviceID identifies an entry of status.devices.
type deviceID struct {
	driver, pool, device string
	share                string
}

func resultID(result *resourcev1.DeviceRequestAllocationResult) deviceID {
	id := deviceID{driver: result.Driver, pool: result.Pool, device: result.Device}
	if result.ShareID != nil {
		id.share = string(*result.ShareID)
	}
	return id
}

func entryID(entry *resourcev1.AllocatedDeviceStatus) deviceID {
	id := deviceID{driver: entry.Driver, pool: entry.Pool, device: entry.Device}
	if entry.ShareID != nil {
		id.share = *entry.ShareID
	}
	return id
}

// entryOf finds what a claim shows of a device, or nil.
func entryOf(claim *resourcev1.ResourceClaim, id deviceID) *resourcev1.AllocatedDeviceStatus {
	i := slices.IndexFunc(claim.Status.Devices, func(e resourcev1.AllocatedDeviceStatus) bool { return entryID(&e) == id })
	if i < 0 {
		return nil
	}
	return &claim.Status.Devices[i]
}

// entryFor is an entry for a result that says nothing yet.
func entryFor(result *resourcev1.DeviceRequestAllocationResult) resourcev1.AllocatedDeviceStatus {
	entry := resourcev1.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
	if result.ShareID != nil {
		entry.ShareID = new(string(*result.ShareID))
	}
	return entry
}

// source is what the entries of a claim are made from.
type source struct {
	lookup *devices.Lookup
	// named reports whether any template is of the driver.
	named func(driver string) bool
	pods  []devices.Object
}

// desire works out what a claim is to show: of each device whose driver has a
// template what the template says, and nothing of others, or of those that are
// not asked to prepare.
func desire(claim *resourcev1.ResourceClaim, from source) (*desired, error) {
	want := &desired{claim: claim}
	seen := map[deviceID]bool{}
	results := claim.Status.Allocation.Devices.Results
	for i := range results {
		id := resultID(&results[i])
		if !from.named(results[i].Driver) || skipsPrepare(claim, results[i].Driver) || seen[id] {
			continue
		}
		seen[id] = true
		template, err := from.lookup.Template(&results[i])
		if err != nil {
			return nil, err
		}
		if !template.ClaimStatus.Writes() {
			continue
		}
		report, err := from.render(claim, &results[i], template)
		if err != nil {
			return nil, err
		}
		want.entries = append(want.entries, newEntry(&results[i], template, report))
		want.namesPods = want.namesPods || template.ClaimStatus.UsesPods
	}
	return want, nil
}

func (s source) render(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, template *devices.Template) (*devices.Report, error) {
	allocated := &devices.Allocated{
		Node:   s.lookup.Node(),
		Result: result,
		Config: configOf(claim, result),
		Claim:  devices.Object{Name: claim.Name, Namespace: claim.Namespace, UID: claim.UID},
		Pods:   s.pods,
	}
	if template.ClaimStatus.UsesDevice {
		device, err := s.lookup.Device(result)
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
	entry := entryFor(result)
	entry.Data, entry.NetworkData = report.Data, report.NetworkData
	if template.ClaimStatus.Ready {
		entry.Conditions = []metav1.Condition{{
			Type: conditionReady, Status: metav1.ConditionTrue, Reason: reasonPrepared, Message: "device is prepared",
		}}
	}
	return entry
}

// managedBy reports whether a field manager has entries in the claim.
func managedBy(claim *resourcev1.ResourceClaim, manager string) bool {
	return len(claim.Status.Devices) > 0 && slices.ContainsFunc(claim.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager
	})
}

// shows reports whether the claim shows what is wanted. Once an entry is there it
// is not written again, unless it names Pods: a driver prepares a claim once.
func (d *desired) shows() bool {
	if len(d.entries) == 0 {
		return true
	}
	if !managedBy(d.claim, fieldManager) {
		return false
	}
	for i := range d.entries {
		entry := entryOf(d.claim, entryID(&d.entries[i]))
		if entry == nil || d.namesPods && !sameReport(entry, &d.entries[i]) {
			return false
		}
	}
	return true
}

func sameReport(a, b *resourcev1.AllocatedDeviceStatus) bool {
	return sameData(a.Data, b.Data) && apiequality.Semantic.DeepEqual(a.NetworkData, b.NetworkData)
}

// sameData compares JSON, since the API server does not keep the order of keys.
func sameData(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	return canonical(a.Raw) == canonical(b.Raw)
}

// canonical is JSON with its keys in order.
func canonical(data []byte) string {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return string(data)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return string(data)
	}
	return string(encoded)
}

// since is when a condition of an entry came to have its status: by what the
// claim shows, or else now.
func since(claim *resourcev1.ResourceClaim, id deviceID, condition metav1.Condition, now metav1.Time) metav1.Time {
	entry := entryOf(claim, id)
	if entry == nil {
		return now
	}
	former := slices.IndexFunc(entry.Conditions, func(c metav1.Condition) bool { return c.Type == condition.Type && c.Status == condition.Status })
	if former < 0 {
		return now
	}
	return entry.Conditions[former].LastTransitionTime
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
