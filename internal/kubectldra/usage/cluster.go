package usage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Objects are what could be read of a cluster.
type Objects struct {
	Pods   []*corev1.Pod
	Claims []*resourcev1.ResourceClaim
	Slices []*resourcev1.ResourceSlice
	// Failures are the events of kubelets that cannot prepare claims.
	Failures []*corev1.Event
	Rules    []inventory.TaintRule
	// IsWithoutPods, IsWithoutClaims and IsWithoutSlices say what could not be read. Then a Pod or a claim that is
	// missing may exist, and a device may be published.
	IsWithoutPods, IsWithoutClaims, IsWithoutSlices bool
}

// Cluster is an index of Objects.
type Cluster struct {
	Objects
	claims map[types.NamespacedName]*resourcev1.ResourceClaim
	pods   map[types.NamespacedName]*corev1.Pod
	// users are the Pods that name a claim.
	users map[types.NamespacedName][]*corev1.Pod
	// pools are the published devices by driver and pool, and then by device. An entry for a pool is made when
	// it is first asked for.
	slices map[poolID][]*resourcev1.ResourceSlice
	pools  map[poolID]map[string]published
	known  *why.Cluster
}

type poolID struct{ driver, pool string }

// published is a device, and the slice that has it.
type published struct {
	device *resourcev1.Device
	slice  *resourcev1.ResourceSlice
}

// NewCluster makes an index.
func NewCluster(objects Objects) *Cluster {
	c := &Cluster{
		Objects: objects, pods: map[types.NamespacedName]*corev1.Pod{}, users: map[types.NamespacedName][]*corev1.Pod{},
		slices: map[poolID][]*resourcev1.ResourceSlice{}, pools: map[poolID]map[string]published{},
		known: why.NewCluster(objects.Claims, objects.Failures),
	}
	c.claims, c.known.Slices = c.known.Claims, objects.Slices
	if objects.IsWithoutSlices {
		c.known.Unread = []string{"resourceslices"}
	}
	for _, pod := range objects.Pods {
		c.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
		for _, key := range facts.ClaimKeys(pod) {
			c.users[key] = append(c.users[key], pod)
		}
	}
	for _, slice := range objects.Slices {
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		c.slices[id] = append(c.slices[id], slice)
	}
	return c
}

// FindPod returns a Pod, or nil.
func (c *Cluster) FindPod(namespace, name string) *corev1.Pod {
	return c.pods[types.NamespacedName{Namespace: namespace, Name: name}]
}

// PodNames are the names of all Pods.
func (c *Cluster) PodNames() []string {
	var names []string
	for _, pod := range c.Pods {
		names = append(names, pod.Name)
	}
	return names
}

// ClaimNames are the names of all claims.
func (c *Cluster) ClaimNames() []string {
	var names []string
	for _, claim := range c.Claims {
		names = append(names, claim.Name)
	}
	return names
}

// findDevice returns the device that the newest generation of a pool has under a name.
func (c *Cluster) findDevice(id poolID, name string) (published, bool) {
	devices, known := c.pools[id]
	if !known {
		devices = map[string]published{}
		var newest int64
		for _, slice := range c.slices[id] {
			newest = max(newest, slice.Spec.Pool.Generation)
		}
		for _, slice := range c.slices[id] {
			if slice.Spec.Pool.Generation < newest {
				continue
			}
			for i := range slice.Spec.Devices {
				devices[slice.Spec.Devices[i].Name] = published{&slice.Spec.Devices[i], slice}
			}
		}
		c.pools[id] = devices
	}
	found, exists := devices[name]
	return found, exists
}

// HasDevice reports whether a slice publishes a device that a claim has.
func (c *Cluster) HasDevice(result *resourcev1.DeviceRequestAllocationResult) bool {
	_, isPublished := c.findDevice(poolID{result.Driver, result.Pool}, result.Device)
	return isPublished
}

// TaintsOf returns the taints of a device that keep Pods away: those of its driver and those of rules.
func (c *Cluster) TaintsOf(driver, pool string, device *resourcev1.Device) []inventory.Taint {
	taints := append(inventory.TaintsOf(device.Taints), inventory.TaintsBy(c.Rules, driver, pool, device.Name)...)
	return slices.DeleteFunc(taints, func(taint inventory.Taint) bool {
		return taint.Effect != resourcev1.DeviceTaintEffectNoSchedule && taint.Effect != resourcev1.DeviceTaintEffectNoExecute
	})
}
