package devicemetrics

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicemetrics/usage"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// kind is what metrics a device has.
type kind uint8

const (
	other kind = iota
	nvidiaGPU
	nvidiaMIG
)

// device is a device whose metrics are shown.
type device struct {
	kind  kind
	board board
	// memory is in bytes, or 0 where nobody says.
	memory float64
	// xid is the code of the last error, or 0 for a healthy device.
	xid float64
	// labels are those of a device that no Pod has.
	labels string
	users  []user
}

// user is a Pod that has a device.
type user struct {
	labels string
	usage.Annotations
	seed uint64
	// started is zero for a Pod that does not run.
	started time.Time
}

// id is a device as claims name it.
type id struct{ driver, pool, name string }

// uninjected knows devices, and injects nothing for them, which would cost time.
type uninjected struct{ containerview.Drivers }

// Injections implements containerview.Drivers.
func (uninjected) Injections(*corev1.Pod, *resourcev1.ResourceClaim, []*resourcev1.DeviceRequestAllocationResult) ([]containerview.Injection, error) {
	return nil, nil
}

// finder finds the devices of a node.
type finder struct {
	caches  *observe.Caches
	drivers containerview.Drivers
	rules   []inventory.TaintRule
	node    string
	// hasUnknown says that the drivers did not know a device.
	hasUnknown bool
}

// findDevices fills in the devices of the node.
func (f *finder) findDevices(found *nodeDevices) {
	used := map[id][]use{}
	for _, pod := range sortedByName(f.caches.Pods.On(f.node)) {
		if !pod.Terminal {
			f.addUses(used, pod)
		}
	}
	for _, slice := range newestSlices(f.caches.Slices.Of(facts.SlicesKey{Node: f.node})) {
		for _, name := range slice.Devices.List() {
			f.addPublished(found, id{slice.Driver, slice.Pool, name}, used, f.taintsOf(slice, name))
		}
	}
	others := slices.SortedFunc(maps.Keys(used), func(a, b id) int { // in pools that nodes share, and of real drivers
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.pool, b.pool), cmp.Compare(a.name, b.name))
	})
	for _, key := range others {
		found.busy = append(found.busy, f.newDevice(key, used[key], f.sharedTaints(key)))
	}
	found.isIncomplete = f.hasUnknown
}

// taintsOf returns the taints of a published device: those of the slice and of DeviceTaintRules.
func (f *finder) taintsOf(slice *facts.Slice, name string) []inventory.Taint {
	return append(inventory.TaintsOf(slice.Taints[name]), inventory.TaintsBy(f.rules, slice.Driver, slice.Pool, name)...)
}

// sharedTaints returns the taints of a device that is in no slice of the node. The slices of real
// drivers are not known.
func (f *finder) sharedTaints(key id) []inventory.Taint {
	for _, slice := range newestSlices(f.caches.Slices.Of(facts.SlicesKey{Driver: key.driver, Pool: key.pool})) {
		if slices.Contains(slice.Devices.List(), key.name) {
			return f.taintsOf(slice, key.name)
		}
	}
	return inventory.TaintsBy(f.rules, key.driver, key.pool, key.name)
}

// addPublished adds a published device, and removes it from used.
func (f *finder) addPublished(found *nodeDevices, key id, used map[id][]use, taints []inventory.Taint) {
	if uses := used[key]; len(uses)+len(taints) > 0 {
		found.busy = append(found.busy, f.newDevice(key, uses, taints))
		delete(used, key)
		return
	}
	found.resting++
	if !found.hasIdle {
		return
	}
	// A partition exists while somebody has it.
	if d := f.newDevice(key, nil, nil); d.kind != nvidiaMIG {
		found.idle = append(found.idle, d)
	}
}

// use is how a Pod has a device.
type use struct {
	pod       *corev1.Pod
	container string
	usage     usage.Annotations
	device    containerview.Device
}

// addUses adds the devices of a Pod. A device counts for the first container that has it, since
// annotations are of the Pod. Admin access is no use.
func (f *finder) addUses(used map[id][]use, observed *observe.Pod) {
	pod := observed.Decode()
	claims := map[string]*resourcev1.ResourceClaim{}
	for _, key := range observed.Claims {
		if claim := f.caches.Claims.Get(key); claim != nil && resourceclaim.IsReservedForPod(pod, claim, true) {
			claims[key.Name] = claim
		}
	}
	containers, err := containerview.Of(pod, claims, f.drivers)
	if err != nil {
		return // a claim is not there, or not allocated: the Pod waits for it, and an event says so
	}
	annotated, _ := usage.Parse(pod.Annotations) // an event reports mistakes
	for _, container := range containers {
		for _, d := range container.Devices {
			key := id{d.Driver, d.Pool, d.Device}
			known := slices.ContainsFunc(used[key], func(u use) bool { return u.pod == pod })
			if !known && !d.AdminAccess {
				used[key] = append(used[key], use{pod, container.Name, annotated, d})
			}
		}
	}
}

// newDevice makes a device with its labels and users.
func (f *finder) newDevice(key id, uses []use, taints []inventory.Taint) device {
	var published resourcev1.Device
	if found := f.drivers.Device(&resourcev1.DeviceRequestAllocationResult{Driver: key.driver, Pool: key.pool, Device: key.name}); found != nil {
		published = *found
	} else {
		f.hasUnknown = true
	}
	d := device{xid: xidOf(taints)}
	if memory, ok := published.Capacity["memory"]; ok {
		d.memory = memory.Value.AsApproximateFloat64()
	}
	own := d.identifyKind(key, f.node, &published)
	if len(uses) == 0 {
		d.labels = formatLabels(own)
	}
	for _, u := range uses {
		of := append(slices.Clone(own), label{"container", u.container}, label{"namespace", u.pod.Namespace}, label{"pod", u.pod.Name})
		d.users = append(d.users, user{
			labels: formatLabels(of), Annotations: u.usage, started: startOf(u.pod),
			seed: usage.Seed(u.pod.Namespace, u.pod.Name, key.driver, key.pool, key.name),
		})
	}
	return d
}

// startOf returns when a Pod began to run, or zero.
func startOf(pod *corev1.Pod) time.Time {
	switch {
	case pod.Status.Phase != corev1.PodRunning:
		return time.Time{}
	case pod.Status.StartTime != nil:
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}

// identifyKind sets the kind of a device, and returns its labels.
func (d *device) identifyKind(key id, node string, published *resourcev1.Device) []label {
	uuid, profile := attributeOf(published, key.driver, "uuid"), attributeOf(published, key.driver, "profile")
	switch {
	case strings.HasPrefix(uuid, "MIG-"):
		d.kind = nvidiaMIG
	case strings.HasPrefix(uuid, "GPU-"):
		d.kind = nvidiaGPU
	default:
		return []label{{"node", node}, {"driver", key.driver}, {"pool", key.pool}, {"device", key.name}}
	}
	model := attributeOf(published, key.driver, "productName")
	d.board = boardOf(model)
	index, instance := numbersOf(key.name)
	labels := []label{
		{"gpu", index},
		{"UUID", uuid},
		{"pci_bus_id", longBusID(attributeOf(published, key.driver, "resource.kubernetes.io/pciBusID"))},
		{"device", "nvidia" + index},
		{"modelName", model},
	}
	if d.kind == nvidiaMIG {
		labels[1].value = cmp.Or(attributeOf(published, key.driver, "parentUUID"), uuid)
		labels = append(labels, label{"GPU_I_PROFILE", profile}, label{"GPU_I_ID", instance})
	}
	return append(labels, label{"Hostname", node})
}

// attributeOf returns the text of an attribute, or "".
func attributeOf(d *resourcev1.Device, driver, name string) string {
	for _, key := range []string{name, driver + "/" + name} {
		if value := d.Attributes[resourcev1.QualifiedName(key)].StringValue; value != nil {
			return *value
		}
	}
	return ""
}

var digits = regexp.MustCompile(`[0-9]+`)

// numbersOf returns the first and the last number in the name of a device: the index of the GPU, and
// where a partition begins.
func numbersOf(name string) (first, last string) {
	if all := digits.FindAllString(name, -1); len(all) > 0 {
		return all[0], all[len(all)-1]
	}
	return "0", "0"
}

// longBusID returns the address of a PCI device with the long domain that NVIDIA's programs print.
func longBusID(address string) string {
	if domain, _, _ := strings.Cut(address, ":"); len(domain) == 4 {
		return "0000" + strings.ToUpper(address)
	}
	return address
}

// fallenOffTheBus is the XID error of a GPU that the driver has lost, the usual one of hardware.
const fallenOffTheBus = 79

// xidOf returns the XID error that taints stand for: the one that a taint of NVIDIA's driver names, or
// else fallenOffTheBus if a taint keeps Pods away.
func xidOf(taints []inventory.Taint) float64 {
	xid := 0.0
	for _, taint := range taints {
		if code, err := strconv.ParseUint(taint.Value, 10, 32); err == nil && strings.HasSuffix(taint.Key, "/xid") {
			return float64(code)
		}
		if taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute {
			xid = fallenOffTheBus
		}
	}
	return xid
}

// newestSlices returns the slices that are of the newest generation of their pool, sorted by name.
func newestSlices(all []*facts.Slice) []*facts.Slice {
	type pool struct{ driver, name string }
	generations := map[pool]int64{}
	for _, slice := range all {
		key := pool{slice.Driver, slice.Pool}
		generations[key] = max(generations[key], slice.Generation)
	}
	return slices.DeleteFunc(sortedByName(all), func(slice *facts.Slice) bool { return slice.Generation < generations[pool{slice.Driver, slice.Pool}] })
}

// sortedByName returns objects sorted by namespace and name.
func sortedByName[T interface {
	GetNamespace() string
	GetName() string
}](all []T) []T {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}
