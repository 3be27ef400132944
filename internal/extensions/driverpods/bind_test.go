package driverpods

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

const chartSpec = `
driver: '{{ .DriverPod.env.DRIVER }}'
driverPod: {selector: {matchLabels: {app: x}}}
poolName: '{{ .Node.metadata.name }}-{{ .DriverPod.tag }}'
sliceLabels: {from: '{{ .DriverPod.namespace }}'}
devices: [{name: gpu, attributes: {args: {string: '{{ join "," .DriverPod.args }}'}, labels: {string: '{{ .DriverPod.labels.app }}'}, pod: {string: '{{ .DriverPod.name }}'}}}]
`

var node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-of-n"}}

func compile(t *testing.T, name, spec string) *devices.Template {
	t.Helper()
	return configtest.SetOf(t, "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: "+name+"}\nspec:\n  "+
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")+"\n").Templates[0]
}

func podsOf(pods ...*corev1.Pod) Listed {
	return func(t *devices.Template) ([]*Pod, bool) {
		var made []*Pod
		for _, pod := range pods {
			made = append(made, NewPod(pod, t.DriverPod.Container))
		}
		return made, true
	}
}

// TestBind: each driver has one template, bound to the Pod that counts.
func TestBind(t *testing.T) {
	t.Parallel()
	ready, newer, starting, crashed, gone := plugin("ready", "d"), plugin("newer", "d"), plugin("starting", "d"), plugin("crashed", "e"), plugin("gone", "e")
	newer.CreationTimestamp, starting.CreationTimestamp = at(5), at(9)
	starting.Status.Conditions[0].Status = corev1.ConditionFalse
	crashed.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(3)}}
	gone.DeletionTimestamp = new(at(4))
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		up   []string
		down map[string]time.Time
	}{
		"none":              {nil, nil, nil},
		"one":               {[]*corev1.Pod{ready}, []string{"d ready"}, nil},
		"the newer":         {[]*corev1.Pod{ready, newer}, []string{"d newer"}, nil},
		"the one in office": {[]*corev1.Pod{starting, ready}, []string{"d ready"}, nil},
		"one that starts":   {[]*corev1.Pod{starting}, []string{"d starting"}, nil},
		"two drivers":       {[]*corev1.Pod{ready, plugin("other", "e")}, []string{"d ready", "e other"}, nil},
		"down":              {[]*corev1.Pod{ready, crashed}, []string{"d ready"}, map[string]time.Time{"e": at(3).Time}},
		"down twice":        {[]*corev1.Pod{crashed, gone}, nil, map[string]time.Time{"e": at(4).Time}},
		"up as well":        {[]*corev1.Pod{crashed, plugin("other", "e")}, []string{"e other"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound := devices.Bind([]*devices.Template{compile(t, "chart", chartSpec)}, node, podsOf(test.pods...).BindTemplate)
			var up []string
			for _, template := range bound.Templates {
				data, err := template.Pod.Data()
				require.NoError(t, err)
				up = append(up, template.Driver+" "+data.(map[string]any)["name"].(string))
			}
			require.ElementsMatch(t, test.up, up)
			require.Len(t, bound.Down, len(test.down))
			for driver, since := range test.down {
				require.Equal(t, since, bound.Down[driver].Since)
				require.True(t, bound.Down[driver].Registered, "the one that crashed will start again")
			}
			require.Equal(t, len(test.up) == 0, len(bound.Absent) == 1)
		})
	}
}

// TestBindOthers: templates without Pods, and on other nodes.
func TestBindOthers(t *testing.T) {
	t.Parallel()
	plain := compile(t, "plain", "driver: d\ndevices: [{name: a}]\n")
	elsewhere := compile(t, "elsewhere", chartSpec+"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: none, operator: Exists}]}]}\n")
	bound := devices.Bind([]*devices.Template{plain, elsewhere}, node, podsOf(plugin("a", "d")).BindTemplate)
	require.Equal(t, []*devices.Template{plain}, bound.Templates)
	require.Empty(t, bound.Absent)

	chart := compile(t, "chart", chartSpec)
	unknown := devices.Bind([]*devices.Template{chart}, node, Listed(func(*devices.Template) ([]*Pod, bool) { return nil, false }).BindTemplate)
	require.Equal(t, []*devices.Template{chart}, unknown.Unknown)
	require.Equal(t, []*devices.Template{chart}, devices.Bind([]*devices.Template{chart}, node, nil).Absent)
}

// TestBindByEnvironment: the Pods of one chart choose by their environment.
func TestBindByEnvironment(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"the same":      {map[string]string{"DRIVER": "d"}, true},
		"another value": {map[string]string{"DRIVER": "e"}, false},
		"one of two":    {map[string]string{"DRIVER": "d", "PROFILE": "net"}, false},
		"not a literal": {map[string]string{"NODE": ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chart := compile(t, "chart", chartSpec)
			chart.DriverPod.Env = test.env
			bound := devices.Bind([]*devices.Template{chart}, node, podsOf(plugin("a", "d")).BindTemplate)
			require.Equal(t, test.want, len(bound.Templates) == 1)
			require.Equal(t, test.want, len(bound.Absent) == 0)
		})
	}
}

func TestBindFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		driver, container, want string
	}{
		"no container":  {"d", "main", `template chart: pod ns/a has no container "main": correct driverPod.container`},
		"no name":       {"", "", "subdomain"},
		"no valid name": {"A_b", "", "subdomain"},
		"no variable":   {"d", "other", "template chart for pod ns/a: spec.driver: Invalid value: \"{{ .DriverPod.env.DRIVER }}\": the driver Pod lacks a field that this reads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chart := compile(t, "chart", chartSpec)
			chart.DriverPod.Container = test.container
			bound := devices.Bind([]*devices.Template{chart}, node, podsOf(plugin("a", test.driver)).BindTemplate)
			require.ErrorContains(t, bound.Failed[chart], test.want)
		})
	}
}

// TestRenderForDriverPod: what templates see of the Pod.
func TestRenderForDriverPod(t *testing.T) {
	t.Parallel()
	bound := devices.Bind([]*devices.Template{compile(t, "chart", chartSpec)}, node, podsOf(plugin("a", "d")).BindTemplate)
	pools, refusals, err := devices.PoolsForNode(bound.Templates, lifecycle.NewObject(node), nil)
	require.NoError(t, err)
	require.Empty(t, refusals)
	require.Equal(t, "d", pools[0].Driver)
	require.Equal(t, "n-v1", pools[0].Name)
	require.Equal(t, map[string]string{"from": "ns"}, pools[0].Labels(&devices.Slice{Devices: pools[0].Devices}))
	attributes := pools[0].Devices[0].Attributes
	require.Equal(t, "--a", *attributes["args"].StringValue)
	require.Equal(t, "x", *attributes["labels"].StringValue)
	require.Equal(t, "a", *attributes["pod"].StringValue)
}

// TestSizeOfDriversOnANode: each driver Pod may have a template make devices once more, and all of
// a node are bounded.
func TestSizeOfDriversOnANode(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", "driver: '{{ .DriverPod.env.DRIVER }}'\ndriverPod: {selector: {matchLabels: {app: x}}}\ndevices: [{name: gpu, count: 10000}]\n")
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, plugin(fmt.Sprintf("p%02d", i), fmt.Sprintf("d%02d", i)))
	}
	bound := devices.Bind([]*devices.Template{template}, node, podsOf(pods...).BindTemplate)
	require.Len(t, bound.Templates, 10)
	require.ErrorContains(t, bound.Failed[template], ": on its node, all templates together may make at most 100000 devices, and make 110000: lower count, or remove templates")
}
