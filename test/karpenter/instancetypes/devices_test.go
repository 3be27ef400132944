package instancetypes

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// pool is a ResourcePoolTemplate for nodes with a label.
func pool(name, driver, key, value, rest string) string {
	return fmt.Sprintf(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: %s}
spec:
  driver: %s
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: ["%s"]}]}]}
%s
---
`, name, driver, key, value, rest)
}

const oneGPU = "  devices: [{name: gpu}]"

// TestLabels: a NodePool's nodes of a type get the devices that the labels which
// they will have select, wherever these are from.
func TestLabels(t *testing.T) {
	t.Parallel()
	it := shipped["p5.48xlarge"]
	for name, test := range map[string]struct {
		key, value string
		pool       *v1.NodePool
		want       bool
	}{
		"instance type":           {"node.kubernetes.io/instance-type", "p5.48xlarge", nodePool("p", nil), true},
		"another type":            {"node.kubernetes.io/instance-type", "g6.xlarge", nodePool("p", nil), false},
		"family":                  {"karpenter.kwok.sh/instance-family", "p5", nodePool("p", nil), true},
		"kwok":                    {"kwok.x-k8s.io/node", "fake", nodePool("p", nil), true},
		"only zone":               {"topology.kubernetes.io/zone", "test-zone-a", nodePool("p", nil), true},
		"one of two capacities":   {"karpenter.sh/capacity-type", "spot", nodePool("p", nil), false},
		"NodePool":                {"karpenter.sh/nodepool", "p", nodePool("p", nil), true},
		"NodePool's class":        {"karpenter.kwok.sh/kwoknodeclass", "default", nodePool("p", nil), true},
		"NodePool's label":        {"team", "a", nodePool("p", map[string]string{"team": "a"}), true},
		"NodePool's other label":  {"team", "a", nodePool("p", map[string]string{"team": "b"}), false},
		"NodePool's requirement":  {"team", "a", nodePool("p", nil, requirement("team", "a")), true},
		"NodePool's requirements": {"team", "a", nodePool("p", nil, requirement("team", "a", "b")), false},
		"NodePool's narrowing":    {"karpenter.sh/capacity-type", "spot", nodePool("p", nil, requirement("karpenter.sh/capacity-type", "spot")), true},
		"not before it is so":     {"karpenter.sh/initialized", "true", nodePool("p", nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := devicesOf(t, pool("a", "gpu.example.com", test.key, test.value, oneGPU)).Of(t.Context(), test.pool, it)
			require.NoError(t, err)
			require.Equal(t, test.want, len(made) == 1)
		})
	}
}

// TestOf: everything that Karpenter knows of devices is there, and what it would
// get wrong is not.
func TestOf(t *testing.T) {
	t.Parallel()
	const type8 = "p5.48xlarge"
	key := "node.kubernetes.io/instance-type"
	d := devicesOf(t, pool("mig", "gpu.example.com", key, type8, `
  devices:
  - name: gpu
    count: 2
    attributes: {uuid: "{{ uuid .Node.metadata.uid .Index }}", cpus: "{{ .Node.status.capacity.cpu }}"}
    capacity: {memory: 80Gi}
    counters: {memory: 80Gi}
    partitions: [{name: half, count: 2, consumes: {memory: 40Gi}}]`)+
		pool("nic", "nic.example.com", key, type8, `
  devices:
  - {name: broken, taints: [{key: k, effect: NoSchedule}]}
  - {name: marked, taints: [{key: k, effect: None}]}
  - {name: shared, allowMultipleAllocations: true}`)+
		pool("fabric", "fabric.example.com", key, type8, `
  sharedWith: {allNodes: true}
  devices: [{name: port}]`))
	made, err := d.Of(t.Context(), nodePool("p", nil), shipped[type8])
	require.NoError(t, err)
	require.Equal(t, map[string][]string{
		"gpu.example.com": {"gpu-0", "gpu-0-half-0", "gpu-0-half-1", "gpu-1", "gpu-1-half-0", "gpu-1-half-1"},
		"nic.example.com": {"marked", "shared"},
	}, names(made))

	counters, gpus, nics := made[0], made[1], made[2]
	require.Len(t, made, 3)
	require.Len(t, counters.SharedCounters, 2)
	require.Empty(t, counters.Devices, "Karpenter ignores devices beside counters")
	require.Equal(t, counters.Pool, gpus.Pool)
	require.Empty(t, gpus.SharedCounters)
	whole, half, other := gpus.Devices[0], gpus.Devices[1], gpus.Devices[4]
	require.Equal(t, "192", *whole.Attributes["cpus"].StringValue)
	require.Equal(t, "80Gi", new(whole.Capacity["memory"].Value).String())
	require.Equal(t, counters.SharedCounters[0].Name, whole.ConsumesCounters[0].CounterSet)
	require.Equal(t, whole.Attributes["uuid"], half.Attributes["parentUUID"], "so that a constraint finds partitions of one GPU")
	require.NotEqual(t, half.Attributes["parentUUID"], other.Attributes["parentUUID"])
	require.True(t, nics.Devices[1].AllowMultipleAllocations)
	require.False(t, nics.Devices[0].AllowMultipleAllocations)
}

// TestFill: one type's mistake is no other's.
func TestFill(t *testing.T) {
	t.Parallel()
	d := devicesOf(t, pool("a", "gpu.example.com", "kwok.x-k8s.io/node", "fake", `
  devices: [{name: gpu, attributes: {rack: "{{ .Node.metadata.labels.rack }}"}}]`)+
		pool("b", "nic.example.com", "kwok.x-k8s.io/node", "fake", "  devices: [{name: nic}]"))
	it := shipped["p5.48xlarge"]
	for _, test := range []struct {
		pool *v1.NodePool
		want map[string][]string
	}{
		{nodePool("p", map[string]string{"rack": "r1"}), map[string][]string{"gpu.example.com": {"gpu"}, "nic.example.com": {"nic"}}},
		{nodePool("p", nil), map[string][]string{"nic.example.com": {"nic"}}},
	} {
		filled := d.Fill(t.Context(), test.pool, []*cloudprovider.InstanceType{it})
		require.Equal(t, test.want, names(filled[0].DynamicResources.ResourceSliceTemplates))
		require.Empty(t, it.DynamicResources.ResourceSliceTemplates, "the given type is another NodePool's too")
		require.Equal(t, it.Allocatable(), filled[0].Allocatable())
	}
}

// TestDecorate: types are filled again only for what has changed.
func TestDecorate(t *testing.T) {
	t.Parallel()
	inner := &provider{types: []*cloudprovider.InstanceType{shipped["p5.48xlarge"]}}
	decorated := Decorate(inner, devicesOf(t, pool("a", "gpu.example.com", "team", "a", oneGPU)))
	get := func(pool *v1.NodePool) *cloudprovider.InstanceType {
		types, err := decorated.GetInstanceTypes(t.Context(), pool)
		require.NoError(t, err)
		require.Len(t, types, 1)
		return types[0]
	}
	with, without := nodePool("with", map[string]string{"team": "a"}), nodePool("without", nil)
	require.Len(t, get(with).DynamicResources.ResourceSliceTemplates, 1)
	require.Empty(t, get(without).DynamicResources.ResourceSliceTemplates)
	first, second := get(with), get(with)
	require.Same(t, first, second)

	without.Spec.Template.Labels, without.Generation = with.Spec.Template.Labels, 2
	require.Len(t, get(without).DynamicResources.ResourceSliceTemplates, 1)

	another := nodePool("with", nil)
	another.UID = "another"
	require.Empty(t, get(another).DynamicResources.ResourceSliceTemplates, "of the same name, made after the first was deleted")

	before := get(with)
	inner.types = []*cloudprovider.InstanceType{shipped["g6.xlarge"]}
	require.NotSame(t, before, get(with))
	require.Equal(t, "g6.xlarge", get(with).Name)

	inner.err = context.DeadlineExceeded
	_, err := decorated.GetInstanceTypes(t.Context(), with)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

type provider struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
	err   error
}

func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, p.err
}
