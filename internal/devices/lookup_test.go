package devices

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// compact is JSON without white space, and with its numbers as they are written.
func compact(t testing.TB, text string) string {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
}

func allocationOf(driver, pool, device string) *resourcev1.DeviceRequestAllocationResult {
	return &resourcev1.DeviceRequestAllocationResult{Driver: driver, Pool: pool, Device: device}
}

func lookupFor(node *corev1.Node, templates ...*Template) *Lookup {
	return (&Bound{Templates: templates}).NewLookup(node)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	gpus := compile(t, "gpus", "driver: d\ndevices: [{name: gpu, count: 2, attributes: {node: '{{ .Node.metadata.name }}', i: {int: '{{ .Index }}'}}}]")
	more := compile(t, "more", "driver: d\ndevices: [{name: big}]")
	pooled := compile(t, "pooled", "driver: d\npoolName: second-{{ .Node.metadata.name }}\ndevices: [{name: gpu, count: 2}]")
	better := compile(t, "better", "driver: d\npriority: 1\ndevices: [{name: gpu}]")
	nic := compile(t, "nic", "driver: e\ndevices: [{name: nic}]")
	elsewhere := compile(t, "elsewhere", "driver: d\nnodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}\ndevices: [{name: gpu, count: 2}]")
	for name, test := range map[string]struct {
		templates            []*Template
		driver, pool, device string
		// want is the name of the template, or empty.
		want string
	}{
		"the only one":             {[]*Template{gpus, nic}, "d", "n", "gpu-1", "gpus"},
		"another driver":           {[]*Template{gpus, nic}, "e", "n", "nic", "nic"},
		"no such device":           {[]*Template{gpus}, "d", "n", "gpu-2", ""},
		"no such driver":           {[]*Template{gpus}, "x", "n", "gpu-0", ""},
		"one of two, first":        {[]*Template{gpus, more}, "d", "n", "gpu-0", "gpus"},
		"one of two, second":       {[]*Template{gpus, more}, "d", "n", "big", "more"},
		"one of two, neither":      {[]*Template{gpus, more}, "d", "n", "small", ""},
		"two pools, first":         {[]*Template{gpus, pooled}, "d", "n", "gpu-0", "gpus"},
		"two pools, second":        {[]*Template{gpus, pooled}, "d", "second-n", "gpu-0", "pooled"},
		"two pools, neither":       {[]*Template{gpus, pooled}, "d", "third-n", "gpu-0", ""},
		"by priority":              {[]*Template{gpus, better}, "d", "n", "gpu", "better"},
		"lower priority":           {[]*Template{gpus, better}, "d", "n", "gpu-0", ""},
		"not for the node":         {[]*Template{elsewhere}, "d", "n", "gpu-0", ""},
		"only one is for the node": {[]*Template{elsewhere, gpus}, "d", "n", "gpu-0", "gpus"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := lookupFor(newNode("n", nil), test.templates...)
			result := allocationOf(test.driver, test.pool, test.device)
			for range 2 { // the second time from what has been rendered
				template, err := lookup.Template(result)
				device, deviceErr := lookup.Device(result)
				if test.want == "" {
					want := "requested device is not allocatable: " + test.device + " in pool " + test.pool + " of driver " + test.driver
					require.EqualError(t, err, want)
					require.EqualError(t, deviceErr, want)
					return
				}
				require.NoError(t, err)
				require.NoError(t, deviceErr)
				require.Equal(t, test.want, template.Name)
				require.Equal(t, test.device, device.Name)
			}
		})
	}
}

// TestLookupOfDevice is each device as it is published.
func TestLookupOfDevice(t *testing.T) {
	t.Parallel()
	shared := compile(t, "shared", "driver: gpu.nvidia.com\npoolName: rack\nsharedWith: {allNodes: true}\ndevices: [{name: port, count: 2}]")
	templates := []*Template{
		compile(t, "mig", mig),
		compile(t, "more", "driver: gpu.nvidia.com\ndevices: [{name: big, attributes: {node: '{{ .Node.metadata.name }}', i: {int: '{{ .Index }}'}}}]"),
		compile(t, "own", "driver: gpu.nvidia.com\npoolName: second-{{ .Node.metadata.name }}\ndevices: [{name: gpu, count: 2, taints: [{key: a, effect: NoSchedule}]}]"),
	}
	node := newNode("n", nil)
	node.Annotations = map[string]string{v1alpha1.DeviceTaintsAnnotation: "gpu-1:b:NoExecute, gpu.nvidia.com/big:c=d:NoSchedule"}
	pools := render(t, node, templates...)
	rack, err := shared.NewSharedPool()
	require.NoError(t, err)
	lookup := lookupFor(node, append(templates, shared)...)
	require.Equal(t, "n", lookup.Node.GetName())
	for _, pool := range append(pools, *rack) {
		for _, published := range pool.Devices {
			device, err := lookup.Device(allocationOf(pool.Driver, pool.Name, published.Name))
			require.NoError(t, err)
			require.Equal(t, published, *device)
		}
	}
	require.Len(t, pools, 2)
}

// TestLookupFails where the pool cannot be rendered, but not where that is not
// needed.
func TestLookupFails(t *testing.T) {
	t.Parallel()
	broken := compile(t, "t", "driver: d\ndevices: [{name: gpu, attributes: {zone: '{{ .Node.metadata.labels.zone }}'}}]")
	lookup := lookupFor(newNode("n", nil), broken)
	template, err := lookup.Template(allocationOf("d", "n", "gpu"))
	require.NoError(t, err)
	require.Same(t, broken, template)
	_, err = lookup.Device(allocationOf("d", "n", "gpu"))
	require.ErrorContains(t, err, "the Node lacks a field that this reads")
}
