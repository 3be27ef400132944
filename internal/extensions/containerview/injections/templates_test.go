package injections

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// viewsOf are the views of a Pod's containers whose claim c is allocated, on a node of the
// templates.
func viewsOf(t *testing.T, documents string, claim *resourcev1.ResourceClaim, containers ...corev1.Container) ([]containerview.Container, error) {
	t.Helper()
	node, pod := claimstest.NewNode("n"), claimstest.NewPod("p", "c")
	node.Labels = map[string]string{"dra.kwok.x-k8s.io/profile": "gpu-example"}
	pod.Spec.Containers = containers
	driver := &Templates{templates.New(configtest.SetOf(t, documents), node, templates.Slices{}, nil)}
	return containerview.Of(pod, map[string]*resourcev1.ResourceClaim{"c": claim}, driver)
}

// naming is a container that names requests of the claim c.
func naming(requests ...string) corev1.Container {
	container := corev1.Container{Name: "main"}
	for _, request := range requests {
		container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: "c", Request: request})
	}
	return container
}

func requested(request string, result resourcev1.DeviceRequestAllocationResult) resourcev1.DeviceRequestAllocationResult {
	result.Request = request
	return result
}

func consuming(result resourcev1.DeviceRequestAllocationResult, amounts map[resourcev1.QualifiedName]string) resourcev1.DeviceRequestAllocationResult {
	result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{}
	for name, amount := range amounts {
		result.ConsumedCapacity[name] = resource.MustParse(amount)
	}
	return result
}

func opaque(driver string, source resourcev1.AllocationConfigSource, parameters string, requests ...string) resourcev1.DeviceAllocationConfiguration {
	return resourcev1.DeviceAllocationConfiguration{Source: source, Requests: requests, DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}},
	}}
}

// TestInjectionsOfExample: with the profile gpu-example, containers see the variables that
// dra-example-driver v0.4.0 injects (applyGpuConfig in internal/profiles/gpu, and cdi.go).
func TestInjectionsOfExample(t *testing.T) {
	t.Parallel()
	profile := readProfile(t, "gpu-example")
	gpu := func(name string) resourcev1.DeviceRequestAllocationResult {
		return claimstest.Device("gpu.example.com", name)
	}
	admin := gpu("gpu-2")
	admin.AdminAccess = new(true)
	const long = `{"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}}`
	const ten = `{"kind": "GpuConfig", "sharing": {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 10}}}`
	common := []string{"KUBERNETES_NODE_NAME=n", "DRA_RESOURCE_DRIVER_NAME=gpu.example.com"}
	const fromClass, fromClaim = resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim
	for name, test := range map[string]struct {
		results []resourcev1.DeviceRequestAllocationResult
		config  []resourcev1.DeviceAllocationConfiguration
		names   []string
		want    []string
	}{
		"default": {
			[]resourcev1.DeviceRequestAllocationResult{gpu("gpu-3")},
			nil,
			[]string{""},
			[]string{"GPU_DEVICE_GPU_3_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false", "GPU_DEVICE_3=gpu-3", "GPU_DEVICE_3_SHARING_STRATEGY=TimeSlicing", "GPU_DEVICE_3_TIMESLICE_INTERVAL=Default"},
		},
		"time slices": {
			[]resourcev1.DeviceRequestAllocationResult{gpu("gpu-0")},
			[]resourcev1.DeviceAllocationConfiguration{opaque("gpu.example.com", fromClaim, long)},
			[]string{""},
			[]string{"GPU_DEVICE_GPU_0_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false", "GPU_DEVICE_0=gpu-0", "GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing", "GPU_DEVICE_0_TIMESLICE_INTERVAL=Long"},
		},
		"configuration of the request, after that of the class": {
			[]resourcev1.DeviceRequestAllocationResult{requested("a", gpu("gpu-0")), requested("b", gpu("gpu-1"))},
			[]resourcev1.DeviceAllocationConfiguration{
				opaque("gpu.example.com", fromClaim, ten, "b"), opaque("gpu.example.com", fromClass, long, "b"), opaque("other.example.com", fromClaim, long, "b"),
			},
			[]string{"b"},
			[]string{"GPU_DEVICE_GPU_1_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false", "GPU_DEVICE_1=gpu-1", "GPU_DEVICE_1_SHARING_STRATEGY=SpacePartitioning", "GPU_DEVICE_1_PARTITION_COUNT=10"},
		},
		"admin access to any": {
			[]resourcev1.DeviceRequestAllocationResult{requested("a", gpu("gpu-1")), requested("b", admin)},
			nil,
			[]string{"a"},
			[]string{"GPU_DEVICE_GPU_1_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=true", "GPU_DEVICE_1=gpu-1", "GPU_DEVICE_1_SHARING_STRATEGY=TimeSlicing", "GPU_DEVICE_1_TIMESLICE_INTERVAL=Default"},
		},
		"share": {
			[]resourcev1.DeviceRequestAllocationResult{claimstest.Share("s", consuming(gpu("gpu-1"), map[resourcev1.QualifiedName]string{"memory": "10Gi", "compute": "5"}))},
			nil,
			[]string{""},
			[]string{"GPU_DEVICE_GPU_1_RESOURCE_CLAIM=uid-of-c", "DRA_ADMIN_ACCESS=false", "GPU_DEVICE_1=gpu-1", "GPU_DEVICE_1_SHARING_STRATEGY=TimeSlicing", "GPU_DEVICE_1_TIMESLICE_INTERVAL=Default", "GPU_DEVICE_1_MEMORY=10Gi", "GPU_DEVICE_1_COMPUTE=5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			claim.UID = "uid-of-c"
			claimstest.Allocate(claim, test.results...)
			claim.Status.Allocation.Devices.Config = test.config
			views, err := viewsOf(t, profile, claim, naming(test.names...))
			require.NoError(t, err)
			require.Equal(t, append(append([]string{}, common...), test.want...), views[0].Env)
		})
	}
}

// TestInjectionsInOrder: those of the claim come first, then those of each request and its devices.
// Each is there once, also where a container names a request and the whole claim.
func TestInjectionsInOrder(t *testing.T) {
	t.Parallel()
	templates := claimstest.Template("d", `  containerEdits:
    perClaim: {env: ['CLAIM_{{ .Claim.name }}={{ range .Devices }}{{ .Result.device }} {{ end }}{{ len .Config }}']}
    perRequest: {env: ['REQUEST_{{ .Request | replace "/" "_" }}={{ range .Devices }}{{ .Device.name }} {{ end }}{{ len .Config }}']}
    perDevice: {env: ['DEVICE_{{ .Device.name }}={{ .Result.request }} {{ .Pod.name }} {{ len .Config }}']}
`)
	claim := claimstest.Allocated("c")
	skipped := claimstest.Device("other", "gpu-0")
	claimstest.Allocate(claim, requested("a/x", claimstest.Device("d", "gpu-0")), requested("b", claimstest.Device("d", "gpu-1")), requested("b", claimstest.Device("d", "gpu-2")), skipped)
	claim.Status.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{
		opaque("d", resourcev1.AllocationConfigSourceClaim, `{}`, "a"), {Source: resourcev1.AllocationConfigSourceClaim},
	}
	all := "CLAIM_c=gpu-0 gpu-1 gpu-2 1"
	a := []string{"REQUEST_a_x=gpu-0 1", "DEVICE_gpu-0=a/x p 1"}
	b := []string{"REQUEST_b=gpu-1 gpu-2 0", "DEVICE_gpu-1=b p 0", "DEVICE_gpu-2=b p 0"}
	for name, test := range map[string]struct {
		names []string
		want  []string
	}{
		"none":         {nil, nil},
		"all":          {[]string{""}, append(append([]string{all}, a...), b...)},
		"alternative":  {[]string{"a"}, append([]string{all}, a...)},
		"b and all":    {[]string{"b", ""}, append(append([]string{all}, b...), a...)},
		"no such":      {[]string{"z"}, nil},
		"twice":        {[]string{"b", "b"}, append([]string{all}, b...)},
		"both, a last": {[]string{"b", "a"}, append(append([]string{all}, b...), a...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			views, err := viewsOf(t, templates, claim.DeepCopy(), naming(test.names...))
			require.NoError(t, err)
			require.Equal(t, test.want, views[0].Env)
		})
	}
}

func TestInjectionsFail(t *testing.T) {
	t.Parallel()
	claim := claimstest.Allocated("c")
	claimstest.Allocate(claim, claimstest.Device("d", "gpu-0"))
	_, err := viewsOf(t, claimstest.Template("d", "  containerEdits: {perDevice: {env: ['{{ .Claim.name }}']}}\n"), claim, naming(""))
	require.EqualError(t, err, `container main: ResourceClaim c: device gpu-0 of driver d: spec.containerEdits.perDevice.env[0]: Invalid value: "c": must be NAME=value, for example GPU_COUNT=1`)
	claimstest.Allocate(claim, claimstest.Device("d", "gone"))
	_, err = viewsOf(t, claimstest.Template("d", ""), claim, naming(""))
	require.ErrorContains(t, err, "requested device is not allocatable: gone in pool n of driver d")
}
