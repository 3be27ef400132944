package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// The rules tested here are those of validateResourceSliceSpec and below in
// k8s.io/kubernetes/pkg/apis/resource/validation/validation.go; a test against
// the real API server compares the two.

func validTemplate() *v1alpha1.ResourcePoolTemplate {
	return &v1alpha1.ResourcePoolTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t"},
		Spec: v1alpha1.ResourcePoolTemplateSpec{
			Driver:   "gpu.example.com",
			PoolName: defaults.PoolName,
			Devices:  []v1alpha1.DeviceTemplate{{Name: "gpu"}},
		},
	}
}

func device(t *v1alpha1.ResourcePoolTemplate) *v1alpha1.DeviceTemplate { return &t.Spec.Devices[0] }

func attributes(names ...string) map[resourcev1.QualifiedName]v1alpha1.Attribute {
	made := map[resourcev1.QualifiedName]v1alpha1.Attribute{}
	for _, name := range names {
		made[resourcev1.QualifiedName(name)] = v1alpha1.Attribute{Type: v1alpha1.AttributeInt, Value: "1"}
	}
	return made
}

func capacities(names ...string) map[resourcev1.QualifiedName]v1alpha1.Capacity {
	made := map[resourcev1.QualifiedName]v1alpha1.Capacity{}
	for _, name := range names {
		made[resourcev1.QualifiedName(name)] = v1alpha1.Capacity{Value: "1"}
	}
	return made
}

func numbered(stem string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", stem, i)
	}
	return names
}

func taints(n int) []resourcev1.DeviceTaint {
	made := make([]resourcev1.DeviceTaint, n)
	for i := range made {
		made[i] = resourcev1.DeviceTaint{Key: fmt.Sprintf("example.com/t%d", i), Effect: resourcev1.DeviceTaintEffectNoSchedule}
	}
	return made
}

func bind(t *v1alpha1.ResourcePoolTemplate, conditions, failures []string) {
	device(t).BindingConditions, device(t).BindingFailureConditions = conditions, failures
}

func nodeSelector(operator corev1.NodeSelectorOperator, values ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: operator, Values: values}},
	}}}
}

func driverPod() *v1alpha1.DriverPod {
	return &v1alpha1.DriverPod{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "driver"}}}
}

func TestValidTemplates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for name, change := range map[string]func(*v1alpha1.ResourcePoolTemplate){
		"minimal":              func(*v1alpha1.ResourcePoolTemplate) {},
		"object name of 253":   func(t *v1alpha1.ResourcePoolTemplate) { t.Name = strings.Repeat("a", 253) },
		"driver of 63":         func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = long },
		"driver in upper case": func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = "GPU.example.com" },
		"driver Pod":           func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.DriverPod = driverPod() },
		"driver of a driver Pod": func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.DriverPod, t.Spec.Driver = driverPod(), "{{ .DriverPod.env.A }}"
		},
		"pool name with slashes":     func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = "a.b/c/d" },
		"pool name of 253":           func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = strings.Repeat("a", 253) },
		"pool name template":         func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = "A{{ .Node.metadata.name }}" },
		"device name of 63":          func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name = long },
		"device name of 63, counted": func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name, device(t).Count = long[:61], new(int32(10)) },
		"count of 1":                 func(t *v1alpha1.ResourcePoolTemplate) { device(t).Count = new(int32(1)) },
		"count of 10000":             func(t *v1alpha1.ResourcePoolTemplate) { device(t).Count = new(int32(10_000)) },
		"attribute name of 32":       func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes(long[:32]) },
		"attribute with a domain":    func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes(long + "/" + long[:32]) },
		"underscores":                func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("_a_1") },
		"32 attributes":              func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes(numbered("a", 32)...) },
		"32 in all": func(t *v1alpha1.ResourcePoolTemplate) {
			device(t).Attributes, device(t).Capacity = attributes(numbered("a", 16)...), capacities(numbered("a", 16)...)
		},
		"16 taints": func(t *v1alpha1.ResourcePoolTemplate) { device(t).Taints = taints(16) },
		"taint without effect on pods": func(t *v1alpha1.ResourcePoolTemplate) {
			device(t).Taints = []resourcev1.DeviceTaint{{Key: "a", Value: "b", Effect: resourcev1.DeviceTaintEffectNone}}
		},
		"binds to node":         func(t *v1alpha1.ResourcePoolTemplate) { device(t).BindsToNode = new(true) },
		"shared":                func(t *v1alpha1.ResourcePoolTemplate) { device(t).AllowMultipleAllocations = new(true) },
		"binding conditions":    func(t *v1alpha1.ResourcePoolTemplate) { bind(t, numbered("example.com/a", 4), numbered("b", 4)) },
		"no conditions":         func(t *v1alpha1.ResourcePoolTemplate) { bind(t, []string{}, []string{}) },
		"condition in capitals": func(t *v1alpha1.ResourcePoolTemplate) { bind(t, []string{"Is.it_A-b"}, []string{"is.it_A-b"}) },
		"node selector": func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.NodeSelector = nodeSelector(corev1.NodeSelectorOpIn, "a")
		},
		"names that only look alike": func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.Devices = []v1alpha1.DeviceTemplate{{Name: "gpu", Count: new(int32(2))}, {Name: "gpu"}, {Name: "gpu-2"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := validTemplate()
			change(template)
			require.Empty(t, ValidateResourcePoolTemplate(template))
		})
	}
}

func TestInvalidTemplates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	const dev = "spec.devices[0]"
	type problems map[string]string
	for name, test := range map[string]struct {
		change func(*v1alpha1.ResourcePoolTemplate)
		want   problems
	}{
		"no object name":                {func(t *v1alpha1.ResourcePoolTemplate) { t.Name = "" }, problems{"metadata.name": "give the object a name"}},
		"bad object name":               {func(t *v1alpha1.ResourcePoolTemplate) { t.Name = "A_b" }, problems{"metadata.name": "lower-case letters"}},
		"no driver":                     {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = "" }, problems{"spec.driver": "for example gpu.example.com"}},
		"driver of 64":                  {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = long }, problems{"spec.driver": "at most 63"}},
		"driver with a _":               {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = "gpu_a" }, problems{"spec.driver": "subdomain"}},
		"driver template":               {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Driver = "{{ .Node }}" }, problems{"spec.driver": "subdomain"}},
		"driver Pod without a selector": {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.DriverPod = &v1alpha1.DriverPod{} }, problems{"spec.driverPod.selector": "an empty one would select every Pod"}},
		"driver Pod of a namespace that cannot be": {func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.DriverPod = driverPod()
			t.Spec.DriverPod.Namespace, t.Spec.DriverPod.Container = "A", "B"
		}, problems{"spec.driverPod.namespace": `use "a"`, "spec.driverPod.container": `use "b"`}},
		"driver Pod with a selector that cannot be": {func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.DriverPod = driverPod()
			t.Spec.DriverPod.Selector.MatchLabels["app"] = "a b"
		}, problems{"spec.driverPod.selector.matchLabels": "a valid label"}},
		"driver Pod and a shared pool": {func(t *v1alpha1.ResourcePoolTemplate) {
			t.Spec.DriverPod, t.Spec.SharedWith, t.Spec.PoolName = driverPod(), &v1alpha1.SharedWith{AllNodes: true}, "shared"
		}, problems{"spec.driverPod": "not with sharedWith"}},
		"pool name of 254":  {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = strings.Repeat("a/", 126) + "aa" }, problems{"spec.poolName": "at most 253"}},
		"pool name A":       {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = "A" }, problems{"spec.poolName": "lower-case letters"}},
		"pool name a/":      {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = "a/" }, problems{"spec.poolName": "subdomain"}},
		"no pool name":      {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.PoolName = "" }, problems{"spec.poolName": "subdomain"}},
		"no devices":        {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.Devices = nil }, problems{"spec.devices": "at least one device"}},
		"no device name":    {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name = "" }, problems{dev + ".name": "for example gpu"}},
		"device name GPU":   {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name = "GPU" }, problems{dev + ".name": "lower-case letters"}},
		"device name a.b":   {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name = "a.b" }, problems{dev + ".name": `inner "-"; use "a-b"`}},
		"device name of 64": {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name = long }, problems{dev + ".name": "63"}},
		"device name of 64 with the last number": {
			func(t *v1alpha1.ResourcePoolTemplate) { device(t).Name, device(t).Count = long[:61], new(int32(11)) },
			problems{dev + ".name": "63"},
		},
		"count of 0":               {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Count = new(int32(0)) }, problems{dev + ".count": "between 1 and 10000"}},
		"negative count":           {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Count = new(int32(-1)) }, problems{dev + ".count": "between 1 and 10000"}},
		"count of 10001":           {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Count = new(int32(10_001)) }, problems{dev + ".count": "between 1 and 10000"}},
		"attribute name of 33":     {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes(long[:33]) }, problems{dev + ".attributes[" + long[:33] + "]": "at most 32"}},
		"attribute name a-b":       {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("a-b") }, problems{dev + ".attributes[a-b]": "C identifier"}},
		"attribute name 1a":        {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("1a") }, problems{dev + ".attributes[1a]": "C identifier"}},
		"no attribute name":        {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("") }, problems{dev + ".attributes[]": "C identifier"}},
		"no domain":                {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("/a") }, problems{dev + ".attributes[/a]": `must have a DNS subdomain before the "/"`}},
		"nothing after the domain": {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("a.b/") }, problems{dev + ".attributes[a.b/]": "C identifier"}},
		"two slashes":              {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes("a/b/c") }, problems{dev + ".attributes[a/b/c]": "C identifier"}},
		"domain of 64":             {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Attributes = attributes(long + "/a") }, problems{dev + ".attributes[" + long + "/a]": "at most 63"}},
		"capacity name a-b":        {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Capacity = capacities("a-b") }, problems{dev + ".capacity[a-b]": "C identifier"}},
		"33 in all": {func(t *v1alpha1.ResourcePoolTemplate) {
			device(t).Attributes, device(t).Capacity = attributes(numbered("a", 20)...), capacities(numbered("a", 13)...)
		}, problems{dev: "must be at most 32 together"}},
		"17 taints":   {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Taints = taints(17) }, problems{dev + ".taints": "at most 16"}},
		"empty taint": {func(t *v1alpha1.ResourcePoolTemplate) { device(t).Taints = make([]resourcev1.DeviceTaint, 1) }, problems{dev + ".taints[0].key": "must be a name", dev + ".taints[0].effect": "NoSchedule"}},
		"taint value": {func(t *v1alpha1.ResourcePoolTemplate) {
			device(t).Taints = taints(1)
			device(t).Taints[0].Value = "a b"
		}, problems{dev + ".taints[0].value": `inner "-", "_" and "."; use "a-b"`}},
		"taint effect": {func(t *v1alpha1.ResourcePoolTemplate) {
			device(t).Taints = taints(2)
			device(t).Taints[1].Effect = "PreferNoSchedule"
		}, problems{dev + ".taints[1].effect": `"NoSchedule", "NoExecute", "None"`}},
		"5 binding conditions": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, numbered("a", 5), numbered("b", 1)) },
			problems{dev + ".bindingConditions": "at most 4"},
		},
		"5 binding failure conditions": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, numbered("a", 1), numbered("b", 5)) },
			problems{dev + ".bindingFailureConditions": "at most 4"},
		},
		"only binding conditions": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, numbered("a", 1), nil) },
			problems{dev + ".bindingFailureConditions": "bindingConditions need at least one"},
		},
		"only binding failure conditions": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, nil, numbered("b", 1)) },
			problems{dev + ".bindingConditions": "bindingFailureConditions need at least one"},
		},
		"condition in both": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, []string{"a", "b"}, []string{"c", "b"}) },
			problems{dev + ".bindingFailureConditions[1]": "must not be one of bindingConditions"},
		},
		"conditions twice": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, []string{"a", "b", "a"}, []string{"c", "c"}) },
			problems{dev + ".bindingConditions[2]": `Duplicate value: "a"`, dev + ".bindingFailureConditions[1]": `Duplicate value: "c"`},
		},
		"no condition names": {
			func(t *v1alpha1.ResourcePoolTemplate) { bind(t, []string{"a", "b c"}, []string{"/d"}) },
			problems{dev + ".bindingConditions[1]": `use "b-c"`, dev + ".bindingFailureConditions[0]": `"/d": must be a name`},
		},
		"no terms":      {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.NodeSelector = &corev1.NodeSelector{} }, problems{"spec.nodeSelector.nodeSelectorTerms": "leave nodeSelector out"}},
		"bad operator":  {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.NodeSelector = nodeSelector("Near", "a") }, problems{"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator": `"Near"`}},
		"In of nothing": {func(t *v1alpha1.ResourcePoolTemplate) { t.Spec.NodeSelector = nodeSelector(corev1.NodeSelectorOpIn) }, problems{"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values": "at least one"}},
		"everything at once": {
			func(t *v1alpha1.ResourcePoolTemplate) {
				*t = v1alpha1.ResourcePoolTemplate{Spec: v1alpha1.ResourcePoolTemplateSpec{PoolName: "A"}}
			},
			problems{"metadata.name": "", "spec.driver": "", "spec.poolName": "", "spec.devices": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := validTemplate()
			test.change(template)
			requireProblems(t, test.want, ValidateResourcePoolTemplate(template))
		})
	}
}

func requireProblems(t *testing.T, want map[string]string, errs field.ErrorList) {
	t.Helper()
	got := map[string]string{}
	for _, err := range errs {
		got[err.Field] += err.Error()
	}
	for path, text := range want {
		require.Contains(t, got, path)
		require.Contains(t, got[path], text)
	}
	require.Len(t, got, len(want), "%v", errs)
}

func TestValidateConfiguration(t *testing.T) {
	t.Parallel()
	configuration := &v1alpha1.KwokDRAConfiguration{}
	requireProblems(t, map[string]string{"metadata.name": "give the object a name"}, ValidateKwokDRAConfiguration(configuration))
	configuration.Name = "fast"
	require.Empty(t, ValidateKwokDRAConfiguration(configuration))
	for dir, want := range map[string]string{
		"run/kwok-dra":                          "must be an absolute path",
		"/run/" + strings.Repeat("a", 32):       "must have at most 36 characters, or the paths of sockets below it would be too long",
		"/run/" + strings.Repeat("a", 31):       "",
		"/run//./" + strings.Repeat("a", 31):    "",
		"/run/" + strings.Repeat("a", 31) + "/": "",
	} {
		configuration.Spec.PluginsDir = dir
		if want == "" {
			require.Empty(t, ValidateKwokDRAConfiguration(configuration))
			continue
		}
		requireProblems(t, map[string]string{"spec.pluginsDir": want}, ValidateKwokDRAConfiguration(configuration))
	}
}
