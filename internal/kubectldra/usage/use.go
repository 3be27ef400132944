package usage

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Device is a device that a claim has.
type Device struct {
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Name    string `json:"device"`
	Product string `json:"product,omitempty"`
	// UUID is one that only this device has.
	UUID string `json:"uuid,omitempty"`
	// Consumed is what the claim takes of the capacities of a device that claims share.
	Consumed    map[string]string `json:"consumedCapacity,omitempty"`
	AdminAccess bool              `json:"adminAccess,omitempty"`

	attributes map[string]string
}

// Attribute returns the value of an attribute or a capacity of the device, with or without the driver's domain.
func (d *Device) Attribute(name string) (string, bool) {
	for _, whole := range []string{name, d.Driver + "/" + name} {
		if value, found := d.attributes[whole]; found {
			return value, true
		}
	}
	return "", false
}

// ID is driver/pool/device.
func (d *Device) ID() string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// Use is a device that a Pod has, or a claim of the Pod that has none.
type Use struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node,omitempty"`
	Claim     string `json:"claim,omitempty"`
	*Device
	State State `json:"state"`
	// Since is when the state began, if that is known.
	Since  *time.Time `json:"since,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// ResourceName is kubectl's name of the Pod.
func (u *Use) ResourceName() string { return "pod/" + u.Pod }

// ListUses returns the devices of all Pods with claims, and the claims without devices that Pods wait for. Where Pods
// cannot be read, claims tell which Pods they are reserved for.
func (c *Cluster) ListUses() []*Use {
	pods := slices.SortedFunc(maps.Values(c.pods), func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), natural.Compare(a.Name, b.Name))
	})
	var all []*Use
	for _, pod := range pods {
		all = append(all, c.usesOf(pod)...)
	}
	if c.IsWithoutPods {
		for _, claim := range c.ListClaims() {
			for _, pod := range claim.Pods {
				for _, device := range claim.Devices {
					all = append(all, &Use{claim.Namespace, pod, claim.Node, claim.Name, device, claim.State, claim.Since, claim.Reason})
				}
			}
		}
	}
	return all
}

func (c *Cluster) usesOf(pod *corev1.Pod) []*Use {
	var all []*Use
	for _, podClaim := range facts.PodClaims(pod) {
		name, _, err := resourceclaim.Name(pod, &podClaim)
		if err == nil && name == nil {
			continue // the controller has decided that the Pod needs no such claim
		}
		use := Use{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName}
		if err != nil {
			all = append(all, use.wait(pod, "its claim "+podClaim.Name+" is not created yet"))
			continue
		}
		use.Claim = *name
		switch claim := c.claims[types.NamespacedName{Namespace: pod.Namespace, Name: *name}]; {
		case claim == nil && c.IsWithoutClaims:
			use.State, use.Reason = Unknown, "claims cannot be read"
			all = append(all, &use)
		case claim == nil:
			all = append(all, use.wait(pod, "claim "+*name+" does not exist"))
		case claim.Status.Allocation == nil:
			all = append(all, use.wait(pod, ""))
		case !resourceclaim.IsReservedForPod(pod, claim, true):
			// Others may use it. For this Pod it is as if it had no devices.
			all = append(all, use.wait(pod, "claim "+*name+" has devices, but is not reserved for the Pod"))
		default:
			for i := range claim.Status.Allocation.Devices.Results {
				result := &claim.Status.Allocation.Devices.Results[i]
				has, found := use, c.statusOf(pod, podClaim.Name, claim, result)
				has.Device, has.State, has.Since, has.Reason = c.describeDevice(result), found.state, found.since, found.reason
				all = append(all, &has)
			}
		}
	}
	return all
}

// wait makes a use of a claim that has no devices for its Pod.
func (u Use) wait(pod *corev1.Pod, reason string) *Use {
	u.State, u.Reason, u.Since = Waiting, reason, timeOrNil(&pod.CreationTimestamp)
	scheduled := facts.PodCondition(pod, corev1.PodScheduled)
	switch {
	case pod.DeletionTimestamp != nil:
		u.State, u.Reason, u.Since = Ending, "the Pod is being deleted", deletionTime(&pod.ObjectMeta)
	case facts.IsTerminal(pod):
		u.State, u.Reason, u.Since = Ended, "the Pod has ended: "+string(pod.Status.Phase), endTime(pod)
	case scheduled.Status == corev1.ConditionFalse:
		u.Since = timeOrNil(&scheduled.LastTransitionTime)
		u.Reason = cmp.Or(reason, scheduled.Message, scheduled.Reason)
	}
	return &u
}

func (c *Cluster) describeDevice(result *resourcev1.DeviceRequestAllocationResult) *Device {
	device := &Device{
		Request: result.Request, Driver: result.Driver, Pool: result.Pool, Name: result.Device,
		AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
	}
	for name, quantity := range result.ConsumedCapacity {
		if device.Consumed == nil {
			device.Consumed = map[string]string{}
		}
		device.Consumed[string(name)] = quantity.String()
	}
	if found, isPublished := c.findDevice(poolID{result.Driver, result.Pool}, result.Device); isPublished {
		described := inventory.Describe(result.Driver, found.device, found.slice.Spec.Devices)
		device.Product, device.UUID, device.attributes = described.Product, described.UUID, described.Attributes
		if device.attributes == nil {
			device.attributes = map[string]string{}
		}
		maps.Copy(device.attributes, described.Capacity)
	}
	return device
}

// DescribeConsumed lists what the claim takes of the capacities of the device.
func (d *Device) DescribeConsumed() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(d.Consumed)) {
		parts = append(parts, strings.TrimPrefix(name, d.Driver+"/")+"="+d.Consumed[name])
	}
	return strings.Join(parts, ",")
}
