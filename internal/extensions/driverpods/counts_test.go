package driverpods

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ofPod has as many devices as the driver's Pod says, in two groups of which one may be
// left out.
const ofPod = "driver: d\ndriverPod: {selector: {matchLabels: {app: x}}}\n" +
	"devices:\n- {name: gpu, countFrom: '{{ .DriverPod.env.GPUS }}', consumesCounters: [{counterSet: 'set-{{ .Index }}', counters: {c: {value: 1}}}]}\n" +
	"- {name: nic, countFrom: ' {{ sub .DriverPod.env.GPUS 1 }}'}\n- {name: one}\n" +
	"sharedCounters: [{name: set, countFrom: '{{ .DriverPod.env.GPUS }}', counters: {c: {value: 1}}}]\n"

// sourceOf is a defaulted template, its spec written in YAML.
func sourceOf(t *testing.T, spec string) *v1alpha1.ResourcePoolTemplate {
	t.Helper()
	template := &v1alpha1.ResourcePoolTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &template.Spec))
	defaults.SetResourcePoolTemplate(template)
	return template
}

func bindWith(t *testing.T, template *devices.Template, count string) (*devices.Template, error) {
	t.Helper()
	return template.BindPod(template, devices.BoundPod{Data: func() (any, error) { return map[string]any{"env": map[string]any{"GPUS": count}}, nil }})
}

// poolOf is the only pool of a template on the node.
func poolOf(t *testing.T, template *devices.Template) devices.Pool {
	t.Helper()
	pools, refused, err := devices.PoolsForNode([]*devices.Template{template}, lifecycle.NewObject(node), nil)
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Len(t, pools, 1)
	return pools[0]
}

// TestCountFrom: each Pod gets the devices that it asks for, whatever others have.
func TestCountFrom(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", ofPod)
	for _, test := range []struct {
		count   string
		devices []string
		sets    int
	}{
		{"1", []string{"gpu-0", "one"}, 1},
		{"3", []string{"gpu-0", "gpu-1", "gpu-2", "nic-0", "nic-1", "one"}, 3},
		{"1", []string{"gpu-0", "one"}, 1},
	} {
		bound, err := bindWith(t, template, test.count)
		require.NoError(t, err)
		pool := poolOf(t, bound)
		var names []string
		for _, device := range pool.Devices {
			names = append(names, device.Name)
		}
		require.Equal(t, test.devices, names)
		require.Len(t, pool.CounterSets, test.sets)
		require.Equal(t, template.Origin, bound.Origin)
	}
}

// TestSizesAreKept, each once, and not without limit.
func TestSizesAreKept(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", ofPod)
	c, errs := newCounts(sourceOf(t, ofPod), field.NewPath("spec"))
	require.Empty(t, errs)
	for _, count := range []int32{1, 3, 1} {
		_, err := c.compileSize(template, []int32{count, count - 1, count})
		require.NoError(t, err)
	}
	require.Len(t, c.compiled, 2, "each size is compiled once")
	for range 2 * maxSizes {
		_, err := c.compileSize(template, []int32{int32(len(c.compiled)) + 10, 0, 1000})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(c.compiled), maxSizes)
}

func TestCountFromFails(t *testing.T) {
	t.Parallel()
	for count, want := range map[string]string{
		"":      `spec.devices[0].countFrom: Invalid value: "": must yield a number of devices, 0 to 10,000`,
		"many":  `spec.devices[0].countFrom: Invalid value: "many": must yield a number of devices, 0 to 10,000`,
		"-1":    `spec.devices[0].countFrom: Invalid value: "-1": must yield a number of devices, 0 to 10,000`,
		"10001": `must be between 1 and 10000`,
	} {
		_, err := bindWith(t, compile(t, "t", ofPod), count)
		require.ErrorContains(t, err, want, count)
	}
}

// TestCountFromOfNone: a driver that finds no devices publishes its pool without any.
func TestCountFromOfNone(t *testing.T) {
	t.Parallel()
	const head = "driver: d\ndriverPod: {selector: {matchLabels: {app: x}}}\n"
	for name, test := range map[string]struct {
		spec   string
		slices []devices.Slice
	}{
		"all groups": {"devices: [{name: gpu, countFrom: '{{ .DriverPod.env.GPUS }}'}]\n", []devices.Slice{{}}},
		"with counters": {
			"devices: [{name: gpu, countFrom: '{{ .DriverPod.env.GPUS }}', consumesCounters: [{counterSet: 'set-{{ .Index }}', counters: {c: {value: 1}}}]}]\n" +
				"sharedCounters: [{name: set, countFrom: '{{ .DriverPod.env.GPUS }}', counters: {c: {value: 1}}}]\n", []devices.Slice{{}},
		},
		"in slices of its own": {
			"devices: [{name: gpu, countFrom: '{{ .DriverPod.env.GPUS }}'}]\nslices: [{devices: [gpu]}]\n", []devices.Slice{{}},
		},
		"one group in a slice of its own": {
			"devices: [{name: gpu, countFrom: '{{ .DriverPod.env.GPUS }}'}, {name: nic}]\nslices: [{devices: [gpu]}, {devices: [nic]}]\n",
			[]devices.Slice{{Devices: []resourcev1.Device{{Name: "nic"}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound, err := bindWith(t, compile(t, "t", head+test.spec), "0")
			require.NoError(t, err)
			pool := poolOf(t, bound)
			for _, layout := range []devices.Layout{devices.CountersApart, devices.CountersWithDevices} {
				made, err := pool.Slices(layout)
				require.NoError(t, err)
				require.Equal(t, test.slices, made)
			}
		})
	}
}

func TestTemplatesOfDriverPodsRefused(t *testing.T) {
	t.Parallel()
	const pod = "driverPod: {selector: {matchLabels: {app: x}}}\n"
	for name, test := range map[string]struct{ spec, path, want string }{
		"driver reads the Node":        {"driver: '{{ .Node.metadata.name }}'\n" + pod + "devices: [{name: a}]", "spec.driver", "there is no .Node here; there is .DriverPod"},
		"no such field":                {"driver: '{{ .DriverPod.envs.A }}'\n" + pod + "devices: [{name: a}]", "spec.driver", "did you mean .DriverPod.env?"},
		"without driverPod":            {"driver: d\ndevices:\n- name: gpu\n  attributes: {a: '{{ .DriverPod.name }}'}\n", "spec.devices[0].attributes[a]", "there is no .DriverPod here"},
		"driver without driverPod":     {"driver: '{{ .DriverPod.name }}'\ndevices: [{name: a}]", "spec.driver", "only with driverPod"},
		"device name":                  {"driver: d\n" + pod + "devices: [{name: '{{ .DriverPod.name }}'}]", "spec.devices[0].name", "there is no .DriverPod here; there is .Index"},
		"pool name of all nodes":       {"driver: d\n" + pod + "poolName: '{{ .DriverPod.env.POOL }}'\ndevices: [{name: a}]", "spec.poolName", "must differ from node to node"},
		"count without driverPod":      {"driver: d\ndevices: [{name: a, countFrom: '2'}]", "spec.devices[0].countFrom", "needs driverPod, whose Pod it reads; use count"},
		"two counts":                   {"driver: d\n" + pod + "devices: [{name: a, count: 1, countFrom: '2'}]", "spec.devices[0].countFrom", "count is there already"},
		"count reads the Node":         {"driver: d\n" + pod + "devices: [{name: a, countFrom: '{{ .Node.metadata.name }}'}]", "spec.devices[0].countFrom", "there is no .Node here; there is .DriverPod"},
		"count of counter sets":        {"driver: d\ndevices: [{name: a}]\nsharedCounters: [{name: b, countFrom: '2', counters: {c: {value: 1}}}]", "spec.sharedCounters[0].countFrom", "needs driverPod"},
		"in claimStatus without a Pod": {"driver: d\nclaimStatus: {data: {a: '{{ .DriverPod.name }}'}}\ndevices: [{name: a}]", "spec.claimStatus.data[a]", "there is no .DriverPod here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs := devices.Compile(sourceOf(t, test.spec))
			require.Len(t, errs, 1)
			require.Equal(t, test.path, errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
	compile(t, "t", "driver: d\n"+pod+"poolName: '{{ .DriverPod.name }}'\ndevices: [{name: a}]")
}
