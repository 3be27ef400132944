package facts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// fullSpec has something in every field that kwok-dra sets.
func fullSpec() *resourcev1.ResourceSliceSpec {
	return &resourcev1.ResourceSliceSpec{
		Driver:   "d",
		NodeName: new("n"),
		Pool:     resourcev1.ResourcePool{Name: "p", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{
			Name: "a",
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"s": {StringValue: new("x")}, "i": {IntValue: new(int64(1))}, "b": {BoolValue: new(true)}, "v": {VersionValue: new("1.0.0")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"m": {Value: resource.MustParse("80Gi")}},
			Taints:   []resourcev1.DeviceTaint{{Key: "k", Value: "v", Effect: resourcev1.DeviceTaintEffectNoSchedule}},
		}, {Name: "b"}},
	}
}

func contentOf(t *testing.T, change func(*resourcev1.ResourceSliceSpec)) Content {
	t.Helper()
	spec := fullSpec()
	change(spec)
	before := spec.DeepCopy()
	content := ContentOf(spec)
	require.Equal(t, before, spec, "hashing changes nothing")
	return content
}

func nothing(*resourcev1.ResourceSliceSpec) {}

func TestContentIgnores(t *testing.T) {
	t.Parallel()
	want := contentOf(t, nothing)
	for name, change := range map[string]func(*resourcev1.ResourceSliceSpec){
		"generation":  func(s *resourcev1.ResourceSliceSpec) { s.Pool.Generation = 9 },
		"slice count": func(s *resourcev1.ResourceSliceSpec) { s.Pool.ResourceSliceCount = 9 },
		"form of a quantity": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity["m"] = resourcev1.DeviceCapacity{Value: resource.MustParse("81920Mi")}
		},
		"cached form of a quantity": func(s *resourcev1.ResourceSliceSpec) {
			var quantity resource.Quantity
			require.NoError(t, quantity.UnmarshalJSON([]byte(`"81920Mi"`)))
			s.Devices[0].Capacity["m"] = resourcev1.DeviceCapacity{Value: quantity}
		},
		"time of a taint": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Taints[0].TimeAdded = &metav1.Time{Time: time.Unix(1, 0)}
		},
		"empty and absent": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[1].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			s.Devices[1].Taints = []resourcev1.DeviceTaint{}
			s.SharedCounters = []resourcev1.CounterSet{}
		},
	} {
		require.Equal(t, want, contentOf(t, change), name)
	}
}

func TestContentSees(t *testing.T) {
	t.Parallel()
	contents := map[Content]string{contentOf(t, nothing): "nothing"}
	for name, change := range map[string]func(*resourcev1.ResourceSliceSpec){
		"driver":          func(s *resourcev1.ResourceSliceSpec) { s.Driver = "e" },
		"pool":            func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = "q" },
		"node":            func(s *resourcev1.ResourceSliceSpec) { s.NodeName = nil },
		"all nodes":       func(s *resourcev1.ResourceSliceSpec) { s.AllNodes = new(true) },
		"node selector":   func(s *resourcev1.ResourceSliceSpec) { s.NodeSelector = &corev1.NodeSelector{} },
		"per device":      func(s *resourcev1.ResourceSliceSpec) { s.PerDeviceNodeSelection = new(true) },
		"shared counters": func(s *resourcev1.ResourceSliceSpec) { s.SharedCounters = []resourcev1.CounterSet{{Name: "c"}} },
		"operations":      func(s *resourcev1.ResourceSliceSpec) { s.SkipNodeOperations = []resourcev1.SkipNodeOperation{"a"} },
		"order":           func(s *resourcev1.ResourceSliceSpec) { s.Devices[0], s.Devices[1] = s.Devices[1], s.Devices[0] },
		"fewer":           func(s *resourcev1.ResourceSliceSpec) { s.Devices = s.Devices[:1] },
		"name":            func(s *resourcev1.ResourceSliceSpec) { s.Devices[1].Name = "c" },
		"attribute": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes["i"] = resourcev1.DeviceAttribute{IntValue: new(int64(2))}
		},
		"attribute type": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes["s"] = resourcev1.DeviceAttribute{VersionValue: new("x")}
		},
		"false": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes["b"] = resourcev1.DeviceAttribute{BoolValue: new(false)}
		},
		"no attribute": func(s *resourcev1.ResourceSliceSpec) { delete(s.Devices[0].Attributes, "b") },
		"capacity": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity["m"] = resourcev1.DeviceCapacity{Value: resource.MustParse("80G")}
		},
		"taint effect": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Taints[0].Effect = resourcev1.DeviceTaintEffectNoExecute
		},
		"no taint": func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = nil },
	} {
		content := contentOf(t, change)
		require.NotContains(t, contents, content, "%s is like %s", name, contents[content])
		contents[content] = name
	}
}

// TestContentSurvivesTheWire: what comes back from the server is what was sent.
func TestContentSurvivesTheWire(t *testing.T) {
	t.Parallel()
	spec := fullSpec()
	want := ContentOf(spec)
	data, err := spec.Marshal()
	require.NoError(t, err)
	var decoded resourcev1.ResourceSliceSpec
	require.NoError(t, decoded.Unmarshal(data))
	require.Equal(t, want, ContentOf(&decoded))
}

func TestObserveSlice(t *testing.T) {
	t.Parallel()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "s", UID: "u", ResourceVersion: "7", Labels: map[string]string{"dra.kwok.x-k8s.io/managed-by": "kwok-dra"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{}},
			OwnerReferences: []metav1.OwnerReference{{Name: "n"}},
		},
		Spec: *fullSpec(),
	}
	added := metav1.Unix(9, 0)
	slice.Spec.Devices[0].Taints[0].TimeAdded = &added
	content := ContentOf(&slice.Spec)
	want := &Slice{
		Meta:            cached.Meta{Name: "s", UID: "u", ResourceVersion: "7"},
		PoolState:       PoolState{PoolID: PoolID{Driver: "d", Pool: "p"}, Generation: 1, Count: 1},
		Node:            "n",
		Devices:         NamesOf(slice.Spec.Devices),
		Taints:          map[string][]resourcev1.DeviceTaint{"a": {{Key: "k", Value: "v", Effect: resourcev1.DeviceTaintEffectNoSchedule, TimeAdded: &added}}},
		OwnerReferences: []metav1.OwnerReference{{Name: "n"}}, Content: content,
		OwnLabels: OwnLabelsOf(slice),
	}
	require.Equal(t, want, ObserveSlice(slice))

	slice.Spec.NodeName, slice.Spec.Devices[0].Taints = nil, nil
	got := ObserveSlice(slice)
	require.Empty(t, got.Node)
	require.Nil(t, got.Taints, "most devices are not tainted")
}
