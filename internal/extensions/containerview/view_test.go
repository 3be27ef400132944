package containerview

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// echo has a variable of each device, and one of each claim.
type echo struct{}

func (echo) Injections(pod *corev1.Pod, claim *resourcev1.ResourceClaim, results []*resourcev1.DeviceRequestAllocationResult) ([]Injection, error) {
	var made []Injection
	for _, r := range results {
		if r.Driver == "broken" {
			return nil, fmt.Errorf("device %s is broken", r.Device)
		}
		made = append(made,
			Injection{ID: "claim " + claim.Name, Edits: v1alpha1.Edits{Env: []string{"CLAIM_" + claim.Name + "=" + pod.Name}}},
			Injection{ID: fmt.Sprint(claim.Name, r.Request, r.Device, r.ShareID), Edits: v1alpha1.Edits{Env: []string{r.Device + "=" + r.Request}}},
		)
	}
	return made, nil
}

func (echo) Device(result *resourcev1.DeviceRequestAllocationResult) *resourcev1.Device {
	if result.Device == "unknown" {
		return nil
	}
	return &resourcev1.Device{Name: result.Device, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("m")}}}
}

// allocated is a claim with devices, each REQUEST=DEVICE.
func allocated(name string, devices ...string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
	for _, device := range devices {
		request, device, _ := strings.Cut(device, "=")
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: request, Driver: "d", Pool: "n", Device: device})
	}
	return claim
}

// somePod has the claim c by its name, t by a template, o by one that made none, and e
// for extended resources.
func somePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
			{Name: "by-name", ResourceClaimName: new("c")}, {Name: "by-template", ResourceClaimTemplateName: new("t")}, {Name: "optional", ResourceClaimTemplateName: new("o")},
		}},
		Status: corev1.PodStatus{
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "by-template", ResourceClaimName: new("p-t-1")}, {Name: "optional"}},
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "e", RequestMappings: []corev1.ContainerExtendedResourceRequest{
				{ContainerName: "main", ResourceName: "example.com/gpu", RequestName: "container-0-request-0"},
				{ContainerName: "other", ResourceName: "example.com/gpu", RequestName: "container-1-request-0"},
			}},
		},
	}
}

func someClaims() map[string]*resourcev1.ResourceClaim {
	return map[string]*resourcev1.ResourceClaim{
		"c": allocated("c", "a=gpu-0", "b/x=gpu-1", "b/x=gpu-2"), "p-t-1": allocated("p-t-1", "t=gpu-3"),
		"e": allocated("e", "container-0-request-0=gpu-4", "container-1-request-0=gpu-5"),
	}
}

func TestUses(t *testing.T) {
	t.Parallel()
	gpu := corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	for name, test := range map[string]struct {
		names    []corev1.ResourceClaim
		requests corev1.ResourceList
		want     []string
	}{
		"none":                  {nil, nil, nil},
		"all requests":          {[]corev1.ResourceClaim{{Name: "by-name"}}, nil, []string{"CLAIM_c=p", "gpu-0=a", "gpu-1=b/x", "gpu-2=b/x"}},
		"request":               {[]corev1.ResourceClaim{{Name: "by-name", Request: "a"}}, nil, []string{"CLAIM_c=p", "gpu-0=a"}},
		"alternatives":          {[]corev1.ResourceClaim{{Name: "by-name", Request: "b"}}, nil, []string{"CLAIM_c=p", "gpu-1=b/x", "gpu-2=b/x"}},
		"alternative":           {[]corev1.ResourceClaim{{Name: "by-name", Request: "b/x"}}, nil, []string{"CLAIM_c=p", "gpu-1=b/x", "gpu-2=b/x"}},
		"no such request":       {[]corev1.ResourceClaim{{Name: "by-name", Request: "z"}}, nil, nil},
		"of a template":         {[]corev1.ResourceClaim{{Name: "by-template"}}, nil, []string{"CLAIM_p-t-1=p", "gpu-3=t"}},
		"order of the Pod":      {[]corev1.ResourceClaim{{Name: "by-template"}, {Name: "by-name", Request: "a"}}, nil, []string{"CLAIM_c=p", "gpu-0=a", "CLAIM_p-t-1=p", "gpu-3=t"}},
		"none made":             {[]corev1.ResourceClaim{{Name: "optional"}}, nil, nil},
		"extended resource":     {nil, gpu, []string{"CLAIM_e=p", "gpu-4=container-0-request-0"}},
		"another resource":      {nil, corev1.ResourceList{"example.com/nic": resource.MustParse("1")}, nil},
		"none of the resource":  {nil, corev1.ResourceList{"example.com/gpu": resource.MustParse("0")}, nil},
		"claim and resource":    {[]corev1.ResourceClaim{{Name: "by-template"}}, gpu, []string{"CLAIM_p-t-1=p", "gpu-3=t", "CLAIM_e=p", "gpu-4=container-0-request-0"}},
		"request and all of it": {[]corev1.ResourceClaim{{Name: "by-name", Request: "a"}, {Name: "by-name"}}, nil, []string{"CLAIM_c=p", "gpu-0=a", "gpu-1=b/x", "gpu-2=b/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := somePod()
			container := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{Claims: test.names, Requests: test.requests}}
			pod.Spec.Containers = []corev1.Container{container, {Name: "idle"}}
			container.Name = "init"
			pod.Spec.InitContainers = []corev1.Container{container}
			views, err := Of(pod, someClaims(), echo{})
			require.NoError(t, err)
			require.Len(t, views, 3)
			require.Equal(t, []string{"init", "main", "idle"}, []string{views[0].Name, views[1].Name, views[2].Name})
			require.Equal(t, []bool{true, false, false}, []bool{views[0].Init, views[1].Init, views[2].Init})
			require.Equal(t, test.want, views[1].Env)
			require.Equal(t, Container{Name: "idle"}, views[2])
			devices := 0
			for _, variable := range test.want {
				if !strings.HasPrefix(variable, "CLAIM_") {
					devices++
				}
			}
			require.Len(t, views[1].Devices, devices)
			if len(test.requests) == 0 { // extended resources are mapped by the container's name
				require.Equal(t, test.want, views[0].Env)
			}
		})
	}
}

// TestShares: each share of a device is a device.
func TestShares(t *testing.T) {
	t.Parallel()
	claim := allocated("c", "a=gpu-0", "a=gpu-0", "a=unknown")
	results := claim.Status.Allocation.Devices.Results
	results[0].ShareID, results[1].ShareID, results[1].AdminAccess = new(types.UID("1")), new(types.UID("2")), new(true)
	results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}
	pod := somePod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "by-name"}, {Name: "by-name", Request: "a"}}}}}
	views, err := Of(pod, map[string]*resourcev1.ResourceClaim{"c": claim}, echo{})
	require.NoError(t, err)
	model := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("m")}}
	require.Equal(t, []Device{
		{Driver: "d", Pool: "n", Device: "gpu-0", Claim: "c", Request: "a", ShareID: "1", ConsumedCapacity: results[0].ConsumedCapacity, Attributes: model},
		{Driver: "d", Pool: "n", Device: "gpu-0", Claim: "c", Request: "a", ShareID: "2", AdminAccess: true, Attributes: model},
		{Driver: "d", Pool: "n", Device: "unknown", Claim: "c", Request: "a"},
	}, views[0].Devices)
}

func TestFails(t *testing.T) {
	t.Parallel()
	unallocated := allocated("c")
	unallocated.Status.Allocation = nil
	broken := allocated("c", "a=gpu-0")
	broken.Status.Allocation.Devices.Results[0].Driver = "broken"
	for want, claims := range map[string]map[string]*resourcev1.ResourceClaim{
		"container main: ResourceClaim c: there is none of that name": {},
		"container main: ResourceClaim c: not allocated":              {"c": unallocated},
		"container main: ResourceClaim c: device gpu-0 is broken":     {"c": broken},
	} {
		pod := somePod()
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "by-name"}}}}}
		_, err := Of(pod, claims, echo{})
		require.EqualError(t, err, want)
	}
	pod := somePod()
	pod.Status.ResourceClaimStatuses = nil
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "by-template"}}}}}
	_, err := Of(pod, someClaims(), echo{})
	require.ErrorContains(t, err, "container init: ")
}

// TestApply: what comes later wins, in the way of container runtimes.
func TestApply(t *testing.T) {
	t.Parallel()
	view := Container{Env: []string{"A=1", "B=2"}}
	view.applyEdits(&v1alpha1.Edits{
		Env:         []string{"C=3", "A=x=y", "AB=4"},
		Mounts:      []v1alpha1.Mount{{ContainerPath: "/a/b/", HostPath: "/1"}, {ContainerPath: "/a", HostPath: "/2"}, {ContainerPath: "/c/d", HostPath: "/3"}},
		DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/a", Type: "c"}, {Path: "/dev/b"}},
	})
	view.applyEdits(&v1alpha1.Edits{Mounts: []v1alpha1.Mount{{ContainerPath: "/a", HostPath: "/4"}}, DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/a", Type: "b"}}})
	require.Equal(t, Container{
		Env:         []string{"A=x=y", "B=2", "C=3", "AB=4"},
		Mounts:      []v1alpha1.Mount{{ContainerPath: "/a", HostPath: "/4"}, {ContainerPath: "/a/b/", HostPath: "/1"}, {ContainerPath: "/c/d", HostPath: "/3"}},
		DeviceNodes: []v1alpha1.DeviceNode{{Path: "/dev/b"}, {Path: "/dev/a", Type: "b"}},
	}, view)
}

// TestOwnVariables: those with a value in the Pod come first.
func TestOwnVariables(t *testing.T) {
	t.Parallel()
	pod := somePod()
	pod.Spec.Containers = []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "by-name", Request: "a"}}},
		Env: []corev1.EnvVar{{Name: "gpu-0", Value: "own"}, {Name: "EMPTY"}, {Name: "FIELD", ValueFrom: &corev1.EnvVarSource{}}, {Name: "EMPTY", Value: "no"}},
	}}
	views, err := Of(pod, someClaims(), echo{})
	require.NoError(t, err)
	require.Equal(t, []string{"gpu-0=a", "EMPTY=no", "CLAIM_c=p"}, views[0].Env)
}

// FuzzOf: whatever the Pod and the claim are, there is a view of each container or an
// error, twice the same; and no view has anything twice.
func FuzzOf(f *testing.F) {
	pod := somePod()
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "by-name"}, {Name: "by-name", Request: "b"}}}}}
	seed, err := json.Marshal(pod)
	require.NoError(f, err)
	claim, err := json.Marshal(someClaims()["c"])
	require.NoError(f, err)
	f.Add(seed, claim)
	f.Fuzz(func(t *testing.T, encodedPod, encodedClaim []byte) {
		var pod corev1.Pod
		var claim resourcev1.ResourceClaim
		if json.Unmarshal(encodedPod, &pod) != nil || json.Unmarshal(encodedClaim, &claim) != nil {
			return
		}
		claims := map[string]*resourcev1.ResourceClaim{"c": &claim, "p-t-1": &claim, "e": &claim}
		views, err := Of(&pod, claims, echo{})
		again, errAgain := Of(&pod, claims, echo{})
		require.Equal(t, views, again)
		require.Equal(t, err == nil, errAgain == nil)
		if err != nil {
			return
		}
		require.Len(t, views, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
		for i := range views {
			requireNothingTwice(t, &views[i])
		}
	})
}

func requireNothingTwice(t *testing.T, view *Container) {
	t.Helper()
	names := map[string]bool{}
	for _, variable := range view.Env {
		name, _, _ := strings.Cut(variable, "=")
		require.False(t, names[name], variable)
		names[name] = true
	}
	for i := range view.Devices {
		for k := range view.Devices[:i] {
			require.False(t, view.Devices[i].isSameResult(view.Devices[k]))
		}
	}
}
