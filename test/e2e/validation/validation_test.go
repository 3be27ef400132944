// Package validation proves that the sidecar refuses the templates whose slices the
// API server would refuse, and no others.
package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// TestValidation holds the offline validation of templates against the API server's:
// both take a slice, or both refuse it. Nothing else of a cluster is needed.
func TestValidation(t *testing.T) {
	t.Parallel()
	options := harness.EveryFeature()
	options.Disable = []string{cluster.Kwok, cluster.ControllerManager, cluster.Scheduler}
	h := harness.New(t, options)
	t.Run("random templates", func(t *testing.T) {
		t.Parallel()
		testRandomTemplates(h.On(t))
	})
	for name, slice := range validationCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.On(t).Needs(laterCases[name], "refuses what later releases take")
			server, offline := verdicts(h, t, slice)
			require.Equal(t, server == nil, offline == nil, "the API server says %v, kwok-dra says %v", server, offline)
		})
	}
	for name, test := range fieldCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.On(t).Needs(test.since, "does not know the field")
			server, offline := verdicts(h, t, test.slice(t))
			if test.stricter != "" {
				require.NoError(t, server, "kwok-dra is not stricter after all: %s", test.stricter)
				require.Error(t, offline)
				return
			}
			require.Equal(t, server == nil, offline == nil, "the API server says %v, kwok-dra says %v", server, offline)
		})
	}
}

// laterCases are those that not every release takes, with the first minor that
// does.
var laterCases = map[string]int{"taint effect None": 35, "16 taints": 35}

// verdicts are what the API server and kwok-dra say of a slice.
func verdicts(h *harness.H, t *testing.T, slice *resourcev1.ResourceSlice) (server, offline error) {
	t.Helper()
	_, server = h.Client.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	_, offline = config.Decode("case", templateOf(t, slice))
	return server, offline
}

// templateOf makes the template that would publish the slice. What the devices
// consume of other slices is there, too.
func templateOf(t *testing.T, slice *resourcev1.ResourceSlice) []byte {
	t.Helper()
	spec := object{
		"driver": slice.Spec.Driver, "poolName": slice.Spec.Pool.Name, "devices": slice.Spec.Devices,
		"sharedCounters": append(slice.Spec.SharedCounters, consumedSets(slice.Spec.Devices)...),
	}
	if slice.Spec.NodeName == nil {
		spec["sharedWith"] = object{"allNodes": slice.Spec.AllNodes, "nodeSelector": slice.Spec.NodeSelector, "perDeviceNodeSelection": slice.Spec.PerDeviceNodeSelection}
	} else { // else the pool's name would have to differ from node to node
		spec["nodeSelector"] = object{"nodeSelectorTerms": []object{{"matchFields": []object{{"key": "metadata.name", "operator": "In", "values": []string{*slice.Spec.NodeName}}}}}}
	}
	if slice.Spec.PartitionTypeAttribute != nil {
		spec["partitionTypeAttribute"] = slice.Spec.PartitionTypeAttribute
	}
	if slice.Spec.SkipNodeOperations != nil {
		spec["skipNodeOperations"] = slice.Spec.SkipNodeOperations
	}
	if len(slice.Spec.Devices) == 0 {
		spec["devices"] = []object{{"name": "gpu"}}
	}
	encoded, err := yaml.Marshal(object{
		"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate",
		"metadata": object{"name": "case"}, "spec": spec,
	})
	require.NoError(t, err)
	return encoded
}

func consumedSets(devices []resourcev1.Device) []resourcev1.CounterSet {
	var sets []resourcev1.CounterSet
	for _, device := range devices {
		for _, consumption := range device.ConsumesCounters {
			if !slices.ContainsFunc(sets, func(set resourcev1.CounterSet) bool { return set.Name == consumption.CounterSet }) {
				sets = append(sets, resourcev1.CounterSet{Name: consumption.CounterSet, Counters: consumption.Counters})
			}
		}
	}
	return sets
}

func validationCases() map[string]*resourcev1.ResourceSlice {
	cases := map[string]*resourcev1.ResourceSlice{}
	add := func(name string, change func(*resourcev1.ResourceSliceSpec)) {
		spec := resourcev1.ResourceSliceSpec{
			Driver:   harness.Driver,
			NodeName: new("node"),
			Pool:     resourcev1.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1},
			Devices:  []resourcev1.Device{{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}},
		}
		change(&spec)
		cases[name] = &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}, Spec: spec}
	}
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, name := range []string{harness.Driver, "a", "UPPER.example.com", long(63), long(64), "a/b", "a_b", "-a", "a..b"} {
		add("driver "+name, func(s *resourcev1.ResourceSliceSpec) { s.Driver = name })
	}
	for _, name := range []string{"pool", "a/b/c", "a//b", "/a", "A", "a_b", long(253), long(254)} {
		add("pool "+name, func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = name })
	}
	for _, name := range []string{"gpu-0", "GPU", "gpu_0", "gpu.0", "-gpu", "0", long(63), long(64)} {
		add("device "+name, func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Name = name })
	}
	for _, name := range []resourcev1.QualifiedName{
		"memory", "a_b", "_", "compute-capability", "0a", "a.b", "example.com/a", "example.com/a-b", "/a", "example.com/", "Example.com/a",
		resourcev1.QualifiedName(long(32)), resourcev1.QualifiedName(long(33)), resourcev1.QualifiedName(long(63) + "/a"), resourcev1.QualifiedName(long(64) + "/a"),
	} {
		add("attribute "+string(name), func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes[name] = resourcev1.DeviceAttribute{BoolValue: new(true)}
		})
		add("capacity "+string(name), func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{name: {Value: resource.MustParse("1")}}
		})
	}
	for _, value := range []string{"", "x", long(64), long(65), strings.Repeat("ä", 32), strings.Repeat("ä", 33)} {
		add("string "+value, func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes["a"] = resourcev1.DeviceAttribute{StringValue: &value}
		})
	}
	for _, value := range []string{
		"1.2.3", "1.2", "1", "v1.2.3", "01.2.3", "1.2.3-rc.1", "1.2.3-01", "1.2.3-0a", "1.2.3+build.5", "1.2.3-a+b", "1.2.3-", "1.2.3 ", "",
		"0.0.0", "99999999999999999999.0.0", "1.0.0-" + long(58), "1.0.0-" + long(59),
	} {
		add("version "+value, func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes["a"] = resourcev1.DeviceAttribute{VersionValue: &value}
		})
	}
	for _, count := range []int{31, 32, 33} {
		add(fmt.Sprintf("%d attributes and capacities", count), func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("1Gi")}}
			for i := range count - 1 {
				s.Devices[0].Attributes[resourcev1.QualifiedName(fmt.Sprintf("a%d", i))] = resourcev1.DeviceAttribute{IntValue: new(int64(i))}
			}
		})
	}
	addTaints(add)
	addBinding(add)
	return cases
}

func addBinding(add func(string, func(*resourcev1.ResourceSliceSpec))) {
	for _, value := range []bool{false, true} {
		add(fmt.Sprint("bindsToNode ", value), func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].BindsToNode = &value })
		add(fmt.Sprint("allowMultipleAllocations ", value), func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].AllowMultipleAllocations = &value
		})
	}
	for name, lists := range map[string][2][]string{
		"one each":               {{"example.com/attached"}, {"example.com/failed"}},
		"four each":              {{"a", "b", "c", "d"}, {"e", "f", "g", "h"}},
		"five conditions":        {{"a", "b", "c", "d", "e"}, {"f"}},
		"five failures":          {{"a"}, {"b", "c", "d", "e", "f"}},
		"no failures":            {{"a"}, nil},
		"no conditions":          {nil, {"a"}},
		"in both":                {{"a", "b"}, {"b"}},
		"condition twice":        {{"a", "a"}, {"b"}},
		"failure twice":          {{"a"}, {"b", "b"}},
		"unlike in case":         {{"A"}, {"a"}},
		"empty condition":        {{""}, {"a"}},
		"condition with a space": {{"a b"}, {"a"}},
		"failure with a slash":   {{"a"}, {"b/"}},
		"two slashes":            {{"a/b/c"}, {"b"}},
		"capital domain":         {{"A.b/c"}, {"b"}},
	} {
		add("binding "+name, func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].BindingConditions, s.Devices[0].BindingFailureConditions = lists[0], lists[1]
		})
	}
}

func addTaints(add func(string, func(*resourcev1.ResourceSliceSpec))) {
	for name, taint := range map[string]resourcev1.DeviceTaint{
		"good":           {Key: "example.com/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoExecute},
		"no value":       {Key: "xid", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		"effect None":    {Key: "xid", Effect: resourcev1.DeviceTaintEffectNone},
		"no key":         {Effect: resourcev1.DeviceTaintEffectNoSchedule},
		"bad key":        {Key: "a b", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		"bad value":      {Key: "xid", Value: "a b", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		"no effect":      {Key: "xid"},
		"unknown effect": {Key: "xid", Effect: "PreferNoSchedule"},
	} {
		add("taint "+name, func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = []resourcev1.DeviceTaint{taint} })
	}
	for _, count := range []int{16, 17} {
		add(fmt.Sprintf("%d taints", count), func(s *resourcev1.ResourceSliceSpec) {
			for i := range count {
				s.Devices[0].Taints = append(s.Devices[0].Taints,
					resourcev1.DeviceTaint{Key: fmt.Sprintf("xid-%d", i), Effect: resourcev1.DeviceTaintEffectNoSchedule})
			}
		})
	}
}
