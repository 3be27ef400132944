package drajudge

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// key identifies an object of one kind.
type key struct{ kind, namespace, name string }

// poolID identifies a pool: two drivers may have pools of the same name.
type poolID struct{ driver, name string }

// deviceID identifies a device.
type deviceID struct{ driver, pool, name string }

func (d deviceID) String() string { return d.driver + "/" + d.pool + "/" + d.name }

func (d deviceID) poolID() poolID { return poolID{d.driver, d.pool} }

func deviceOf(result *resourcev1.DeviceRequestAllocationResult) deviceID {
	return deviceID{result.Driver, result.Pool, result.Device}
}

// supply holds the objects by which an allocation is judged: slices, classes, taint rules, nodes and
// namespaces; and quotas.
type supply struct {
	objects map[key]runtime.Object
	rules   map[string]*resourcev1.DeviceTaintRule
	nodes   map[string]*corev1.Node
	quotas  map[key]*corev1.ResourceQuota
	// nodeNames are the names of nodes, sorted on first use.
	nodeNames []string
	// slices are those of each pool, by name, and pools what they say together, computed on first use.
	slices map[poolID]map[string]*resourcev1.ResourceSlice
	pools  map[poolID]*pool
	// ofNode counts the slices of each pool that name a node, and shared those that name none.
	ofNode map[string]map[poolID]int
	shared map[poolID]int
}

func newSupply() *supply {
	return &supply{
		objects: map[key]runtime.Object{},
		rules:   map[string]*resourcev1.DeviceTaintRule{},
		nodes:   map[string]*corev1.Node{},
		quotas:  map[key]*corev1.ResourceQuota{},
		slices:  map[poolID]map[string]*resourcev1.ResourceSlice{},
		pools:   map[poolID]*pool{},
		ofNode:  map[string]map[poolID]int{},
		shared:  map[poolID]int{},
	}
}

// replace stores an object, or removes it if the new one is nil. It returns the object that was there, so that
// another call undoes it.
func (s *supply) replace(id key, object runtime.Object) runtime.Object {
	old := s.objects[id]
	if object == nil {
		delete(s.objects, id)
	} else {
		s.objects[id] = object
	}
	switch id.kind {
	case "ResourceSlice":
		if slice, isSlice := old.(*resourcev1.ResourceSlice); isSlice {
			s.removeSlice(slice)
		}
		if slice, isSlice := object.(*resourcev1.ResourceSlice); isSlice {
			s.addSlice(slice)
		}
	case "DeviceTaintRule":
		delete(s.rules, id.name)
		if rule, isRule := object.(*resourcev1.DeviceTaintRule); isRule {
			s.rules[id.name] = rule
		}
	case "Node":
		delete(s.nodes, id.name)
		if old == nil || object == nil {
			s.nodeNames = nil
		}
		if node, isNode := object.(*corev1.Node); isNode {
			s.nodes[id.name] = node
		}
	}
	return old
}

func poolOf(slice *resourcev1.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

func (s *supply) addSlice(slice *resourcev1.ResourceSlice) {
	id := poolOf(slice)
	if s.slices[id] == nil {
		s.slices[id] = map[string]*resourcev1.ResourceSlice{}
	}
	s.slices[id][slice.Name] = slice
	delete(s.pools, id)
	s.poolsReaching(slice)[id]++
}

func (s *supply) removeSlice(slice *resourcev1.ResourceSlice) {
	id := poolOf(slice)
	delete(s.slices[id], slice.Name)
	delete(s.pools, id)
	counts := s.poolsReaching(slice)
	if counts[id]--; counts[id] == 0 {
		delete(counts, id)
	}
}

// poolsReaching returns the index that a slice belongs to.
func (s *supply) poolsReaching(slice *resourcev1.ResourceSlice) map[poolID]int {
	name := slice.Spec.NodeName
	if name == nil || *name == "" {
		return s.shared
	}
	if s.ofNode[*name] == nil {
		s.ofNode[*name] = map[poolID]int{}
	}
	return s.ofNode[*name]
}

// poolsFor returns the pools that may have devices for a node, sorted.
func (s *supply) poolsFor(node string) []*pool {
	ids := maps.Clone(s.shared)
	maps.Copy(ids, s.ofNode[node])
	var pools []*pool
	for id := range ids {
		pools = append(pools, s.pool(id))
	}
	slices.SortFunc(pools, func(a, b *pool) int { return a.id.compare(b.id) })
	return pools
}

func (s *supply) class(name string) *resourcev1.DeviceClass {
	class, _ := s.objects[key{kind: "DeviceClass", name: name}].(*resourcev1.DeviceClass)
	return class
}

func (s *supply) namespace(name string) *corev1.Namespace {
	namespace, _ := s.objects[key{kind: "Namespace", name: name}].(*corev1.Namespace)
	return namespace
}

// nodesAdmittedBy returns the nodes that a node selector admits, sorted by name. A node that the selector names
// counts even if the history lacks it.
func (s *supply) nodesAdmittedBy(selector *corev1.NodeSelector) []*corev1.Node {
	names, isPinned := pinnedNodes(selector)
	if !isPinned {
		if s.nodeNames == nil {
			s.nodeNames = slices.Sorted(maps.Keys(s.nodes))
		}
		names = s.nodeNames
	}
	var admitted []*corev1.Node
	for _, name := range names {
		node := s.nodes[name]
		if node == nil {
			node = &corev1.Node{}
			node.Name = name
		}
		if s.nodes[name] == nil || admitsNode(selector, node) {
			admitted = append(admitted, node)
		}
	}
	return admitted
}

// mayAdmit reports whether a node selector admits a node, or may do so if the history lacks the node.
func (s *supply) mayAdmit(selector *corev1.NodeSelector, name string) bool {
	if node := s.nodes[name]; node != nil {
		return admitsNode(selector, node)
	}
	names, isPinned := pinnedNodes(selector)
	return !isPinned || slices.Contains(names, name)
}

// taintsOf returns the taints of a device, with those of the rules that select it.
func (s *supply) taintsOf(id deviceID, device *resourcev1.Device) []resourcev1.DeviceTaint {
	taints := device.Taints
	for _, name := range slices.Sorted(maps.Keys(s.rules)) {
		if rule := s.rules[name]; selectsDevice(rule.Spec.DeviceSelector, id) {
			taints = append(slices.Clip(taints), rule.Spec.Taint)
		}
	}
	return taints
}

// taintedSlices returns all slices, with the taints of rules.
func (s *supply) taintedSlices() []*resourcev1.ResourceSlice {
	var tainted []*resourcev1.ResourceSlice
	for id, members := range s.slices {
		for _, slice := range members {
			if len(s.rules) > 0 {
				slice = slice.DeepCopy()
				for i := range slice.Spec.Devices {
					device := &slice.Spec.Devices[i]
					device.Taints = s.taintsOf(deviceID{id.driver, id.name, device.Name}, device)
				}
			}
			tainted = append(tainted, slice)
		}
	}
	return tainted
}

// selectsDevice reports whether a rule's selector selects a device. No selector selects none.
func selectsDevice(selector *resourcev1.DeviceTaintSelector, id deviceID) bool {
	return selector != nil &&
		(selector.Driver == nil || *selector.Driver == id.driver) &&
		(selector.Pool == nil || *selector.Pool == id.pool) &&
		(selector.Device == nil || *selector.Device == id.name)
}

func keyOf(object runtime.Object, kind string) key {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return key{kind: kind}
	}
	return key{kind, accessor.GetNamespace(), accessor.GetName()}
}
