package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// state is all that the oracle looks at.
type state struct {
	inForce
	found
	// others may be in force instead.
	others []force
	// relaunched tells that sidecars were started after the first ones.
	relaunched bool
	// several tells that there is more than one sidecar.
	several bool
	// leavers are nodes that have left since the last sidecar was started.
	leavers map[string]bool
}

// inForce is what the sidecars are told.
type inForce struct {
	templates templates
	// neverRetires tells that no node is retired.
	neverRetires bool
	// selection says which nodes the sidecars act for.
	selection selection
}

// found is what there is in the cluster.
type found struct {
	nodes  map[string]*corev1.Node
	pods   map[types.UID]*corev1.Pod
	claims []resourcev1.ResourceClaim
	slices []resourcev1.ResourceSlice
	// explained are the Pods of which an event says why they wait.
	explained map[types.UID]bool
}

// The names that the contract gives.
const (
	managedBy       = "dra.kwok.x-k8s.io/managed-by"
	taintAnnotation = "dra.kwok.x-k8s.io/device-taints"
	fakeAnnotation  = "kwok.x-k8s.io/node"
)

// poolKey is a pool: node is empty for one that nodes share.
type poolKey struct{ node, driver, name string }

// wantedPool is a pool that is to exist.
type wantedPool struct {
	owner   types.UID
	devices map[string]wantedDevice
	// unsure is set where what is there depends on what was before. Where an annotation
	// holds it, even what was edited by hand stays.
	unsure bool
}

// wantedDevice is a device without what the server adds.
type wantedDevice struct {
	revision, index int64
	rack            string
	taints          string
}

// gibberish begins an annotation that cannot be followed.
const gibberish = "gibberish"

// node is a node that the sidecars act for, or nil.
func (s *state) node(name string) *corev1.Node {
	if node := s.nodes[name]; node != nil && s.selection.has(node) {
		return node
	}
	return nil
}

// wantedPools works out the pools from templates and nodes.
func (s *state) wantedPools() map[poolKey]wantedPool {
	wanted := map[poolKey]wantedPool{}
	for _, node := range s.nodes {
		// An annotation that cannot be followed leaves all as it is, retired or not.
		if !s.selection.has(node) || s.retired(node) && !held(node) {
			continue
		}
		for driver := range s.chosen(node) {
			s.addPools(wanted, node, driver, s.standing(node, driver))
		}
	}
	return wanted
}

// chosen are, by driver, the templates of the highest priority, by name.
func (f *inForce) chosen(node *corev1.Node) map[string][]poolTemplate {
	byDriver := map[string][]poolTemplate{}
	for _, name := range slices.Sorted(maps.Keys(f.templates)) {
		t := f.templates[name]
		if !slices.Contains(t.kinds, node.Labels[kindLabel]) || t.tier != "" && node.Labels[tierLabel] != t.tier {
			continue
		}
		others := byDriver[t.driver]
		switch {
		case len(others) == 0 || t.priority > others[0].priority:
			byDriver[t.driver] = []poolTemplate{t}
		case t.priority == others[0].priority:
			byDriver[t.driver] = append(others, t)
		}
	}
	return byDriver
}

// standing are the templates that are chosen for a driver, the older ones first.
func (f *inForce) standing(node *corev1.Node, driver string) []poolTemplate {
	chosen := f.chosen(node)[driver]
	slices.SortStableFunc(chosen, func(a, b poolTemplate) int { return cmp.Compare(a.created, b.created) })
	return chosen
}

func (f *inForce) addPools(wanted map[poolKey]wantedPool, node *corev1.Node, driver string, chosen []poolTemplate) {
	own := wantedPool{owner: node.UID, devices: map[string]wantedDevice{}}
	own.unsure = !ready(node) || held(node)
	for _, t := range chosen {
		if t.shared {
			key := poolKey{driver: driver, name: t.poolName()}
			known, ok := wanted[key]
			if !f.retired(node) {
				wanted[key] = wantedPool{owner: t.uid, devices: t.devices(nil), unsure: !ready(node) && (!ok || known.unsure)}
			}
			continue
		}
		// Of two that clash on a node all of the later one is left out.
		if made := t.devices(node); !own.hasAny(made) {
			own.take(made)
		}
	}
	if len(own.devices) > 0 {
		wanted[poolKey{node.Name, driver, node.Name}] = own
	}
}

func (w *wantedPool) take(made map[string]wantedDevice) { maps.Copy(w.devices, made) }

func (w *wantedPool) hasAny(names map[string]wantedDevice) bool {
	for name := range names {
		if _, ok := w.devices[name]; ok {
			return true
		}
	}
	return false
}

func (t *poolTemplate) devices(node *corev1.Node) map[string]wantedDevice {
	made := map[string]wantedDevice{}
	for i := range t.count {
		device := wantedDevice{revision: int64(t.revision), index: int64(i), rack: "none"}
		name := fmt.Sprintf("%s-%d", t.device, i)
		if node != nil {
			device.taints = annotated(node, t.driver, name)
			if rack := node.Labels[rackLabel]; rack != "" {
				device.rack = rack
			}
		}
		made[name] = device
	}
	return made
}

// annotated are the taints that a node's annotation gives a device.
func annotated(node *corev1.Node, driver, device string) string {
	var taints []string
	for entry := range strings.SplitSeq(node.Annotations[taintAnnotation], ",") {
		target, taint, _ := strings.Cut(entry, ":")
		if target == device || target == driver+"/"+device {
			taints = append(taints, taint)
		}
	}
	slices.Sort(taints)
	return strings.Join(taints, ",")
}

func held(node *corev1.Node) bool {
	return strings.HasPrefix(node.Annotations[taintAnnotation], gibberish)
}

func (f *inForce) retired(node *corev1.Node) bool {
	_, ok := node.Labels[retiredLabel]
	return ok && !f.neverRetires
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// wrongPools says what is wrong with the slices that there are: by what is in force,
// and by all that may be in force instead.
func (s *state) wrongPools() []string {
	problems := s.poolProblems()
	for i := range s.others {
		other := s.in(&s.others[i])
		also := other.poolProblems()
		maps.DeleteFunc(problems, func(key poolKey, _ string) bool {
			return also[key] == "" || s.others[i].holds(key, other.wantedPools(), s.slices)
		})
	}
	return slices.Sorted(maps.Values(problems))
}

// in is the state where that is in force.
func (s *state) in(f *force) *state {
	other := *s
	other.templates, other.others, other.neverRetires = f.templates, nil, !slices.Contains(f.settings, retireWhen)
	return &other
}

// poolProblems says what is wrong with each pool.
func (s *state) poolProblems() map[poolKey]string {
	wanted := s.wantedPools()
	published := s.publishedPools(wanted)
	wrong := map[poolKey]string{}
	for key, pool := range published {
		if want, ok := wanted[key]; !ok && (s.forgotten(key.node) || s.nobodys(pool)) {
			continue
		} else if !ok {
			wrong[key] = fmt.Sprintf("pools: %+v has %d slices and is not to exist", key, len(pool))
		} else if problem := want.wrong(pool); problem != "" {
			wrong[key] = fmt.Sprintf("pools: %+v: %s", key, problem)
		}
	}
	for key, want := range wanted {
		if len(published[key]) == 0 && !want.unsure {
			wrong[key] = fmt.Sprintf("pools: %+v is missing, with %d devices", key, len(want.devices))
		}
	}
	return wrong
}

// poolOf is the pool of a slice.
func poolOf(slice *resourcev1.ResourceSlice) poolKey {
	key := poolKey{driver: slice.Spec.Driver, name: slice.Spec.Pool.Name}
	if slice.Spec.NodeName != nil {
		key.node = *slice.Spec.NodeName
	}
	return key
}

// The most devices that the API server takes in a slice, without taints and with.
const (
	mostDevices = 128
	mostTainted = 64
)

// wrong says what is wrong with a pool.
func (w *wantedPool) wrong(pool []resourcev1.ResourceSlice) string {
	if w.unsure {
		return ""
	}
	found := map[string]wantedDevice{}
	total := 0
	for i := range pool {
		slice := &pool[i]
		if slice.Labels[managedBy] == "" {
			return "slice " + slice.Name + " does not have the label"
		}
		if slice.Spec.Pool != pool[0].Spec.Pool || slice.Spec.Pool.ResourceSliceCount != int64(len(pool)) {
			return fmt.Sprintf("%d slices, of which one says %+v and one %+v", len(pool), pool[0].Spec.Pool, slice.Spec.Pool)
		}
		if problem := w.wrongOwner(slice.OwnerReferences); problem != "" {
			return "slice " + slice.Name + " " + problem
		}
		for j := range slice.Spec.Devices {
			found[slice.Spec.Devices[j].Name] = foundDevice(&slice.Spec.Devices[j])
			total++
		}
	}
	if total != len(w.devices) || !maps.Equal(found, w.devices) {
		return fmt.Sprintf("%d devices, %d of them different; want %d: %s", total, len(found), len(w.devices), firstDifference(found, w.devices))
	}
	most := mostDevices
	if slices.ContainsFunc(slices.Collect(maps.Values(w.devices)), func(d wantedDevice) bool { return d.taints != "" }) {
		most = mostTainted
	}
	if want := (len(w.devices) + most - 1) / most; len(pool) != want {
		return fmt.Sprintf("%d slices for %d devices, want %d", len(pool), len(w.devices), want)
	}
	return ""
}

func (w *wantedPool) wrongOwner(owners []metav1.OwnerReference) string {
	switch {
	case w.owner == "" && len(owners) == 0:
		return ""
	case len(owners) != 1 || owners[0].UID != w.owner:
		return fmt.Sprintf("has owners %+v, want the node %s", owners, w.owner)
	}
	return ""
}

func foundDevice(device *resourcev1.Device) wantedDevice {
	var taints []string
	for _, taint := range device.Taints {
		text := taint.Key
		if taint.Value != "" {
			text += "=" + taint.Value
		}
		taints = append(taints, text+":"+string(taint.Effect))
	}
	slices.Sort(taints)
	found := wantedDevice{taints: strings.Join(taints, ",")}
	if a := device.Attributes["revision"]; a.IntValue != nil {
		found.revision = *a.IntValue
	}
	if a := device.Attributes["index"]; a.IntValue != nil {
		found.index = *a.IntValue
	}
	if a := device.Attributes["rack"]; a.StringValue != nil {
		found.rack = *a.StringValue
	}
	return found
}

func firstDifference(found, wanted map[string]wantedDevice) string {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if found[name] != wanted[name] {
			return fmt.Sprintf("%s is %+v, want %+v", name, found[name], wanted[name])
		}
	}
	return "there are devices too many"
}
