package devices

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

var noon = time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// plugin is a Pod that runs a plugin, Ready, on the node n.
func plugin(name, driver string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "x"}, CreationTimestamp: at(0)},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{
			{Name: "plugin", Image: "r.example.com:5000/x:v1", Args: []string{"--a"}, Env: []corev1.EnvVar{
				{Name: "DRIVER", Value: driver}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			}},
			{Name: "other", Image: "y"},
		}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(1)}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// TestDriverPodState: what the kubelet knows of the plugin.
func TestDriverPodState(t *testing.T) {
	t.Parallel()
	terminated := func(seconds int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(seconds)}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	deleted := func(pod *corev1.Pod, seconds int) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(at(seconds+30)), new(int64(30))
	}
	for name, test := range map[string]struct {
		change func(pod *corev1.Pod, plugin *corev1.ContainerStatus)
		want   string
	}{
		"Ready":     {func(*corev1.Pod, *corev1.ContainerStatus) {}, "ready connected registered"},
		"not Ready": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status.Conditions[0].Status = "False" }, "connected registered"},
		"no longer Ready": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			c.State.Running.StartedAt, pod.Status.Conditions[0].Status = at(0), "False"
		}, "ready connected registered"},
		"crashed": {func(_ *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(5) }, "registered lost 5"},
		"will start again": {func(_ *corev1.Pod, c *corev1.ContainerStatus) {
			c.State, c.LastTerminationState = waiting, terminated(6)
		}, "registered lost 6"},
		"runs again":          {func(_ *corev1.Pod, c *corev1.ContainerStatus) { c.LastTerminationState = terminated(6) }, "ready connected registered"},
		"being deleted":       {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { deleted(pod, 7) }, "lost 7"},
		"ended, then deleted": {func(pod *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(5); deleted(pod, 7) }, "lost 5"},
		"deleted, then ended": {func(pod *corev1.Pod, c *corev1.ContainerStatus) { c.State = terminated(9); deleted(pod, 7) }, "lost 7"},
		"failed": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State = corev1.PodFailed, terminated(8)
		}, "lost 8"},
		"never started": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State, pod.Status.Conditions[0].Status = corev1.PodPending, waiting, "False"
		}, ""},
		"never started, deleted": {func(pod *corev1.Pod, c *corev1.ContainerStatus) {
			pod.Status.Phase, c.State = corev1.PodPending, waiting
			deleted(pod, 7)
		}, ""},
		"bound":                       {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status = corev1.PodStatus{} }, ""},
		"a status without containers": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) { pod.Status.ContainerStatuses = nil }, "ready connected registered"},
		"failed without containers": {func(pod *corev1.Pod, _ *corev1.ContainerStatus) {
			pod.Status.Phase, pod.Status.ContainerStatuses, pod.Status.Conditions[0].Status = corev1.PodFailed, nil, "False"
		}, "lost 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := plugin("a", "d")
			test.change(pod, &pod.Status.ContainerStatuses[0])
			require.Equal(t, test.want, stateText(NewDriverPod(pod, "")))
		})
	}
}

func stateText(p *DriverPod) string {
	text := ""
	for _, is := range []struct {
		it   bool
		name string
	}{{p.Ready, "ready"}, {p.Connected, "connected"}, {p.Registered, "registered"}} {
		if is.it {
			text += " " + is.name
		}
	}
	if !p.Lost.IsZero() {
		text += fmt.Sprintf(" lost %v", p.Lost.Sub(noon).Seconds())
	}
	if text == "" {
		return ""
	}
	return text[1:]
}

func TestDriverPodIsSame(t *testing.T) {
	t.Parallel()
	first, other := plugin("a", "d"), plugin("a", "d")
	other.ResourceVersion = "2"
	require.True(t, NewDriverPod(first, "").Same(NewDriverPod(other, "")))
	other.Status.Conditions[0].Status = corev1.ConditionFalse
	require.False(t, NewDriverPod(first, "").Same(NewDriverPod(other, "")))
	require.False(t, NewDriverPod(first, "").Same(NewDriverPod(plugin("a", "e"), "")))
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"a:v1": "v1", "r:5000/a:v1": "v1", "r:5000/a": "latest", "a": "latest", "a@sha256:0": "", "a:v1@sha256:0": "v1", "": "",
	} {
		require.Equal(t, want, tagOf(image), image)
	}
}

const chartSpec = `
driver: '{{ .DriverPod.env.DRIVER }}'
driverPod: {selector: {matchLabels: {app: x}}}
poolName: '{{ .Node.metadata.name }}-{{ .DriverPod.tag }}'
sliceLabels: {from: '{{ .DriverPod.namespace }}'}
devices: [{name: gpu, attributes: {args: {string: '{{ join "," .DriverPod.args }}'}, labels: {string: '{{ .DriverPod.labels.app }}'}, pod: {string: '{{ .DriverPod.name }}'}}}]
`

func podsOf(pods ...*corev1.Pod) Pods {
	return func(t *Template) ([]*DriverPod, bool) {
		var made []*DriverPod
		for _, pod := range pods {
			made = append(made, NewDriverPod(pod, t.DriverPod.Container))
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
			bound := Bind([]*Template{compile(t, "chart", chartSpec)}, newNode("n", nil), podsOf(test.pods...))
			var up []string
			for _, template := range bound.Templates {
				up = append(up, template.Driver+" "+template.driverPods.pod.Name)
			}
			require.ElementsMatch(t, test.up, up)
			require.Len(t, bound.Down, len(test.down))
			for driver, since := range test.down {
				require.Equal(t, since, bound.Down[driver].Since)
				require.True(t, bound.Down[driver].Registered(), "the one that crashed will start again")
			}
			require.Equal(t, len(test.up) == 0, len(bound.Absent) == 1)
		})
	}
}

// TestBindOthers: templates without Pods, and on other nodes.
func TestBindOthers(t *testing.T) {
	t.Parallel()
	plain := compile(t, "plain", namedDevices("a"))
	elsewhere := compile(t, "elsewhere", chartSpec+"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: none, operator: Exists}]}]}\n")
	bound := Bind([]*Template{plain, elsewhere}, newNode("n", nil), podsOf(plugin("a", "d")))
	require.Equal(t, []*Template{plain}, bound.Templates)
	require.Empty(t, bound.Absent)

	chart := compile(t, "chart", chartSpec)
	unknown := Bind([]*Template{chart}, newNode("n", nil), func(*Template) ([]*DriverPod, bool) { return nil, false })
	require.Equal(t, []*Template{chart}, unknown.Unknown)
	require.Equal(t, []*Template{chart}, Bind([]*Template{chart}, newNode("n", nil), nil).Absent)
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
			bound := Bind([]*Template{chart}, newNode("n", nil), podsOf(plugin("a", "d")))
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
		"no variable":   {"d", "other", "the driver Pod lacks a field that this reads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chart := compile(t, "chart", chartSpec)
			chart.DriverPod.Container = test.container
			bound := Bind([]*Template{chart}, newNode("n", nil), podsOf(plugin("a", test.driver)))
			require.ErrorContains(t, bound.Failed[chart], test.want)
		})
	}
}

// TestRenderForDriverPod: what templates see of the Pod.
func TestRenderForDriverPod(t *testing.T) {
	t.Parallel()
	node := newNode("n", nil)
	bound := Bind([]*Template{compile(t, "chart", chartSpec)}, node, podsOf(plugin("a", "d")))
	pools, err := Pools(bound.Templates, lifecycle.NodeObject(node))
	require.NoError(t, err)
	require.Equal(t, "d", pools[0].Driver)
	require.Equal(t, "n-v1", pools[0].Name)
	require.Equal(t, map[string]string{"from": "ns"}, pools[0].Labels(&Slice{Devices: pools[0].Devices}))
	attributes := pools[0].Devices[0].Attributes
	require.Equal(t, "--a", *attributes["args"].StringValue)
	require.Equal(t, "x", *attributes["labels"].StringValue)
	require.Equal(t, "a", *attributes["pod"].StringValue)
}

func TestDriverPodTemplatesRefused(t *testing.T) {
	t.Parallel()
	const pod = "driverPod: {selector: {matchLabels: {app: x}}}\n"
	for name, test := range map[string]struct{ spec, path, want string }{
		"driver reads the Node":        {"driver: '{{ .Node.metadata.name }}'\n" + pod + "devices: [{name: a}]", "spec.driver", "there is no .Node here; there is .DriverPod"},
		"no such field":                {"driver: '{{ .DriverPod.envs.A }}'\n" + pod + "devices: [{name: a}]", "spec.driver", "did you mean .DriverPod.env?"},
		"without driverPod":            {oneGPU(`a: "{{ .DriverPod.name }}"`), "spec.devices[0].attributes[a]", "there is no .DriverPod here"},
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
			_, errs := Compile(source(t, "t", test.spec))
			require.Len(t, errs, 1)
			require.Equal(t, test.path, errs[0].Field)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
	compile(t, "t", "driver: d\n"+pod+"poolName: '{{ .DriverPod.name }}'\ndevices: [{name: a}]")
}
