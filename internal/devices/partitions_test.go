package devices

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

const mig = `
driver: gpu.nvidia.com
devices:
- name: gpu
  count: 2
  attributes:
    type: gpu
    uuid: "GPU-{{ uuid .Node.metadata.uid .Index }}"
    index: {int: "{{ .Index }}"}
  capacity: {memory: 80Gi}
  taints: [{key: k, effect: None}]
  counters: {memory: 80Gi}
  slots: {name: memory-slice, count: 8}
  partitions:
  - name: 1g
    placements: [0, 1, 6]
    consumes: {memory: 10Gi}
    attributes: {type: mig, parentIndex: {int: "{{ .Index }}"}, number: {int: "{{ .Partition }}"}, placement: {int: "{{ .Placement }}"}}
    capacity: {memory: 10Gi}
  - name: 3g
    placements: [0, 4]
    size: 4
    consumes: {memory: 40Gi}
`

func find(t *testing.T, pool *Pool, name string) *resourcev1.Device {
	t.Helper()
	i := slices.IndexFunc(pool.Devices, func(d resourcev1.Device) bool { return d.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return &pool.Devices[i]
}

// consumed tells what a device takes of its counter sets.
func consumed(device *resourcev1.Device) map[string]map[string]string {
	sets := map[string]map[string]string{}
	for _, consumption := range device.ConsumesCounters {
		sets[consumption.CounterSet] = amounts(consumption.Counters)
	}
	return sets
}

func amounts(counters map[string]resourcev1.Counter) map[string]string {
	amounts := map[string]string{}
	for name, counter := range counters {
		amounts[name] = counter.Value.String()
	}
	return amounts
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", mig)
	pool := &render(t, newNode("n", nil), template)[0]
	require.Equal(t, []string{
		"gpu-0", "gpu-0-1g-0", "gpu-0-1g-1", "gpu-0-1g-2", "gpu-0-3g-0", "gpu-0-3g-1",
		"gpu-1", "gpu-1-1g-0", "gpu-1-1g-1", "gpu-1-1g-2", "gpu-1-3g-0", "gpu-1-3g-1",
	}, deviceNames(pool.Devices))
	all := map[string]string{
		"memory": "80Gi", "memory-slice-0": "1", "memory-slice-1": "1", "memory-slice-2": "1", "memory-slice-3": "1",
		"memory-slice-4": "1", "memory-slice-5": "1", "memory-slice-6": "1", "memory-slice-7": "1",
	}
	require.Len(t, pool.CounterSets, 2)
	require.Equal(t, "gpu-1-counters", pool.CounterSets[1].Name)
	require.Equal(t, all, amounts(pool.CounterSets[1].Counters))
	require.Equal(t, map[string]map[string]string{"gpu-1-counters": all}, consumed(find(t, pool, "gpu-1")))
	require.Equal(t, map[string]map[string]string{"gpu-1-counters": {"memory": "10Gi", "memory-slice-6": "1"}}, consumed(find(t, pool, "gpu-1-1g-2")))
	require.Equal(t, map[string]map[string]string{"gpu-0-counters": {
		"memory": "40Gi", "memory-slice-4": "1", "memory-slice-5": "1", "memory-slice-6": "1", "memory-slice-7": "1",
	}}, consumed(find(t, pool, "gpu-0-3g-1")))
	require.Len(t, template.content.byName, 12)
}

func TestPartitionsInherit(t *testing.T) {
	t.Parallel()
	pool := &render(t, newNode("n", nil), compile(t, "t", mig))[0]
	parent, small, large := find(t, pool, "gpu-1"), find(t, pool, "gpu-1-1g-2"), find(t, pool, "gpu-1-3g-0")
	require.Equal(t, "gpu", *large.Attributes["type"].StringValue)
	require.Equal(t, "mig", *small.Attributes["type"].StringValue)
	require.Equal(t, int64(1), *large.Attributes["index"].IntValue)
	require.Equal(t, int64(1), *small.Attributes["parentIndex"].IntValue)
	require.Equal(t, int64(2), *small.Attributes["number"].IntValue)
	require.Equal(t, int64(6), *small.Attributes["placement"].IntValue)
	require.Equal(t, parent.Taints, small.Taints)
	require.Equal(t, "10Gi", amountOf(small.Capacity["memory"]))
	require.Empty(t, large.Capacity, "what the whole device has is not in a part of it")
	require.Equal(t, "80Gi", amountOf(parent.Capacity["memory"]))

	uuids := map[string]bool{}
	for i := range pool.Devices {
		uuids[*pool.Devices[i].Attributes["uuid"].StringValue] = true
	}
	require.Len(t, uuids, len(pool.Devices), "each has one of its own")
	require.Equal(t, parent.Attributes["uuid"], small.Attributes["parentUUID"])
	again := &render(t, newNode("n", nil), compile(t, "t", mig))[0]
	require.Equal(t, pool.Devices, again.Devices)
	other := &render(t, newNode("m", nil), compile(t, "t", mig))[0]
	require.NotEqual(t, small.Attributes["uuid"], find(t, other, "gpu-1-1g-2").Attributes["uuid"])
	require.NotContains(t, parent.Attributes, resourcev1.QualifiedName("parentUUID"))
}

func amountOf(capacity resourcev1.DeviceCapacity) string {
	return capacity.Value.String()
}

func TestPartitionsWithUUIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	pool := &render(t, newNode("n", nil), compile(t, "t", `
driver: d
devices:
- name: gpu
  attributes: {uuid: fixed}
  counters: {m: 2}
  partitions:
  - {name: a, count: 2, consumes: {m: 1}, attributes: {uuid: "mine-{{ .Partition }}"}}
  - {name: b, consumes: {m: 1}, attributes: {parentUUID: other}}
  - {name: c, consumes: {m: 1}}
`))[0]
	uuid := func(device, attribute string) string {
		return *find(t, pool, device).Attributes[resourcev1.QualifiedName(attribute)].StringValue
	}
	require.Equal(t, []string{"gpu", "gpu-a-0", "gpu-a-1", "gpu-b-0", "gpu-c-0"}, deviceNames(pool.Devices))
	require.Equal(t, "mine-1", uuid("gpu-a-1", "uuid"))
	require.Equal(t, "fixed", uuid("gpu-a-1", "parentUUID"))
	require.Equal(t, "other", uuid("gpu-b-0", "parentUUID"))
	require.Equal(t, uuidOf(t, "fixed", "gpu-b-0"), uuid("gpu-b-0", "uuid"))
	require.Equal(t, uuidOf(t, "fixed", "gpu-c-0"), uuid("gpu-c-0", "uuid"))
}

// TestCounters: written by hand, as upstream.
func TestCounters(t *testing.T) {
	t.Parallel()
	pool := &render(t, newNode("n", nil), compile(t, "t", `
driver: d
sharedCounters:
- {name: mem, count: 2, counters: {m: {value: 80Gi}}}
- {name: "net-{{ .Index }}", counters: {vfs: {value: "8"}}}
devices:
- name: gpu
  count: 2
  consumesCounters:
  - {counterSet: "mem-{{ .Index }}", counters: {m: {value: 80Gi}}}
  - {counterSet: net-0, counters: {vfs: {value: "1"}}}
- {name: plain}
`))[0]
	var sets []string
	for _, set := range pool.CounterSets {
		sets = append(sets, set.Name)
	}
	require.Equal(t, []string{"mem-0", "mem-1", "net-0"}, sets)
	require.Equal(t, map[string]map[string]string{"mem-1": {"m": "80Gi"}, "net-0": {"vfs": "1"}}, consumed(find(t, pool, "gpu-1")))
	require.Empty(t, find(t, pool, "plain").ConsumesCounters)
}

func TestNamesAreTemplates(t *testing.T) {
	t.Parallel()
	pool := &render(t, newNode("n", nil), compile(t, "t", `
driver: d
devices:
- {name: "pci-{{ printf \"%02x\" .Index }}", count: 12, attributes: {bus: "{{ .Index }}"}}
- {name: "{{ index (list \"left\" \"right\") .Index }}", count: 2}
`))[0]
	names := deviceNames(pool.Devices)
	require.Len(t, names, 14)
	require.Equal(t, "pci-0b", names[11])
	require.Equal(t, []string{"left", "right"}, names[12:])
	require.Equal(t, "11", *pool.Devices[11].Attributes["bus"].StringValue)
}

func TestExpandRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ spec, want string }{
		"duplicate": {
			"driver: d\ndevices: [{name: a-1}, {name: a, count: 3}]",
			`spec.devices[1].name: Duplicate value: "a-1": spec.devices[0].name gives that name already; rename one`,
		},
		"duplicate partition": {
			"driver: d\ndevices: [{name: a-b-0}, {name: a, counters: {m: 1}, partitions: [{name: b, consumes: {m: 1}}]}]",
			`spec.devices[1].partitions[0].name: Duplicate value: "a-b-0": spec.devices[0].name gives that name already; rename one`,
		},
		"constant template": {
			"driver: d\ndevices: [{name: 'a{{/**/}}', count: 2}]",
			`spec.devices[0].name: Duplicate value: "a": spec.devices[0].name gives that name already; rename one`,
		},
		"name reads the node": {
			"driver: d\ndevices: [{name: 'a-{{ .Node.metadata.name }}'}]",
			`spec.devices[0].name: Invalid value: "a-{{ .Node.metadata.name }}": must not read .Node; it sees only .Index, since it must be the same on every node`,
		},
		"rendered name": {
			"driver: d\ndevices: [{name: 'a_{{ .Index }}'}]",
			`spec.devices[0].name: Invalid value: "a_0": `,
		},
		"counter set twice": {
			"driver: d\nsharedCounters: [{name: a-counters, counters: {m: {value: 1}}}]\ndevices: [{name: a, counters: {m: 1}}]",
			`spec.devices[0].counters: Duplicate value: "a-counters": spec.sharedCounters[0].name gives that name already; rename one`,
		},
		"no such counter set": {
			"driver: d\nsharedCounters: [{name: a, counters: {m: {value: 1}}}]\ndevices: [{name: x}, {name: a, consumesCounters: [{counterSet: b, counters: {m: {value: 1}}}]}]",
			`spec.devices[1].consumesCounters[0].counterSet: Invalid value: "b": there is no such counter set in the template; it has a`,
		},
		"no such counter": {
			"driver: d\nsharedCounters: [{name: a, counters: {m: {value: 1}}}]\ndevices: [{name: a, consumesCounters: [{counterSet: a, counters: {o: {value: 1}}}]}]",
			`spec.devices[0].consumesCounters[0].counters[o]: Invalid value: "o": there is no such counter in the counter set a; it has m`,
		},
		"shared reads the node": {
			"driver: d\npoolName: p\nsharedWith: {allNodes: true}\ndevices: [{name: a, attributes: {a: '{{ .Node.metadata.name }}'}}]",
			`spec.devices[0].attributes[a]: Invalid value: "{{ .Node.metadata.name }}": must not read .Node; it is of a pool that nodes share`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := Compile(source(t, "t", test.spec))
			require.Len(t, errs, 1)
			require.Contains(t, errs[0].Error(), test.want)
		})
	}
}

func TestSharedPool(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", `
driver: d
sharedWith: {allNodes: true}
devices: [{name: a, count: 2, attributes: {uuid: "{{ uuid .Index }}"}}]
`)
	require.Equal(t, "t", template.SharedPool())
	require.Empty(t, render(t, newNode("n", nil), template), "it is no node's own")
	pool, err := template.NewSharedPool()
	require.NoError(t, err)
	require.Equal(t, "t", pool.Name)
	require.True(t, pool.SharedWith.AllNodes)
	require.Nil(t, pool.Owner)
	require.Equal(t, uuidOf(t, 1), *pool.Devices[1].Attributes["uuid"].StringValue)

	owned := source(t, "t", "driver: d\nsharedWith: {allNodes: true}\ndevices: [{name: a}]")
	owned.UID = "u"
	compiled, errs := Compile(owned)
	require.Empty(t, errs)
	pool, err = compiled.NewSharedPool()
	require.NoError(t, err)
	require.Equal(t, "ResourcePoolTemplate", pool.Owner.Kind)
	require.EqualValues(t, "u", pool.Owner.UID)
}

// TestPerDevice: each device says for which node it is, and so do its partitions.
func TestPerDevice(t *testing.T) {
	t.Parallel()
	pool, err := compile(t, "t", `
driver: d
sharedWith: {perDeviceNodeSelection: true}
devices:
- {name: a, count: 2, nodeName: "n-{{ .Index }}", counters: {m: 1}, partitions: [{name: p, consumes: {m: 1}}]}
- {name: b, allNodes: true}
`).NewSharedPool()
	require.NoError(t, err)
	nodes := map[string]string{}
	for _, device := range pool.Devices[:4] {
		nodes[device.Name] = *device.NodeName
	}
	require.Equal(t, map[string]string{"a-0": "n-0", "a-0-p-0": "n-0", "a-1": "n-1", "a-1-p-0": "n-1"}, nodes)
	require.True(t, *pool.Devices[4].AllNodes)
	require.Nil(t, pool.Devices[4].NodeName)
}

// TestTemplatesOfOnePool: what cannot be in one pool names both templates.
func TestTemplatesOfOnePool(t *testing.T) {
	t.Parallel()
	with := func(name, spec string) *Template { return compile(t, name, "driver: d\n"+spec) }
	counted := func(name string) string { return "devices: [{name: " + name + ", counters: {m: 1}}]" }
	_, err := Pools([]*Template{with("a", "sharedCounters: [{name: x-counters, counters: {m: {value: 1}}}]\ndevices: [{name: w}]"), with("b", counted("x"))}, lifecycle.NewObject(newNode("n", nil)))
	require.EqualError(t, err, "template a and template b both have the counter set x-counters in pool n of driver d: rename one, or set poolName or priority; template b is left out on this node")
	pools, err := Pools([]*Template{with("a", counted("x")), with("b", counted("w"))}, lifecycle.NewObject(newNode("n", nil)))
	require.NoError(t, err)
	require.Len(t, pools[0].CounterSets, 2)
	_, err = Pools([]*Template{with("a", "devices: [{name: x}]"), with("b", "skipNodeOperations: ['*']\ndevices: [{name: w}]")}, lifecycle.NewObject(newNode("n", nil)))
	require.EqualError(t, err, "template a and template b both say different things of skipNodeOperations in pool n of driver d: make them equal, or set poolName or priority; template b is left out on this node")
}
