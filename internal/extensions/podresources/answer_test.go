package podresources

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
)

// someClaim has what two drivers have prepared.
func someClaim(name string) *claiminfo.Info {
	return &claiminfo.Info{Namespace: "ns", ClaimName: name, DriverState: map[string]claiminfo.DriverState{
		"gpu.example.com": {Devices: []claiminfo.Device{
			{PoolName: "node", DeviceName: "gpu-0", CDIDeviceIDs: []string{"example.com/gpu=0"}},
			{PoolName: "node", DeviceName: "gpu-1", CDIDeviceIDs: []string{"example.com/gpu=1"}, ShareID: new(types.UID("share"))},
		}},
		"cpu.example.com": {Devices: []claiminfo.Device{{PoolName: "node", DeviceName: "cpu-0"}}},
	}}
}

// devicesOf are the devices of someClaim, as the kubelet lists them.
func devicesOf(claim string) *podresourcesv1.DynamicResource {
	first, second := &podresourcesv1.CDIDevice{Name: "example.com/gpu=0"}, &podresourcesv1.CDIDevice{Name: "example.com/gpu=1"}
	return &podresourcesv1.DynamicResource{ClaimNamespace: "ns", ClaimName: claim, ClaimResources: []*podresourcesv1.ClaimResource{
		{DriverName: "cpu.example.com", PoolName: "node", DeviceName: "cpu-0"},
		{DriverName: "gpu.example.com", PoolName: "node", DeviceName: "gpu-0", CdiDevices: []*podresourcesv1.CDIDevice{first}},
		{DriverName: "gpu.example.com", PoolName: "node", DeviceName: "gpu-1", ShareId: new("share"), CdiDevices: []*podresourcesv1.CDIDevice{first, second}},
	}}
}

// somePod has a claim by its name, one of a template, and a container that uses the given ones.
func somePod(uses ...string) *corev1.Pod {
	container := corev1.Container{Name: "main"}
	for _, use := range uses {
		container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: use})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{container}, ResourceClaims: []corev1.PodResourceClaim{
			{Name: "named", ResourceClaimName: new("claim")}, {Name: "made", ResourceClaimTemplateName: new("template")}, {Name: "late", ResourceClaimTemplateName: new("template")},
		}},
		Status: corev1.PodStatus{
			ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: new("pod-made")}},
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}},
		},
	}
}

// TestResourcesOf has the cases of TestListPodResourcesV1, TestListPodResourcesWithInitContainersV1 and TestGetPodResourcesV1 of the
// kubelet (pkg/kubelet/apis/podresources/server_v1_test.go), and of TestGetContainerClaimInfos (pkg/kubelet/cm/dra/manager_test.go).
func TestResourcesOf(t *testing.T) {
	t.Parallel()
	withInit := func(policy *corev1.ContainerRestartPolicy) *corev1.Pod {
		pod := somePod()
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", RestartPolicy: policy, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "named"}}}}}
		return pod
	}
	extended := somePod()
	extended.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: "extended", RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "main"}},
	}
	unprepared := somePod("named", "made")
	unprepared.Spec.ResourceClaims[0].ResourceClaimName = new("unprepared")
	main := func(resources ...*podresourcesv1.DynamicResource) *podresourcesv1.ContainerResources {
		return &podresourcesv1.ContainerResources{Name: "main", DynamicResources: resources}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want []*podresourcesv1.ContainerResources
	}{
		"pod without devices":                     {somePod(), []*podresourcesv1.ContainerResources{main()}},
		"pod with dynamic resources":              {somePod("made", "named"), []*podresourcesv1.ContainerResources{main(devicesOf("claim"), devicesOf("pod-made"))}},
		"pod having an init container":            {withInit(nil), []*podresourcesv1.ContainerResources{main()}},
		"pod having a restartable init container": {withInit(new(corev1.ContainerRestartPolicyAlways)), []*podresourcesv1.ContainerResources{{Name: "init", DynamicResources: []*podresourcesv1.DynamicResource{devicesOf("claim")}}, main()}},
		"should get extended resource claim info": {extended, []*podresourcesv1.ContainerResources{main(devicesOf("extended"))}},
		"one claim is not prepared":               {unprepared, []*podresourcesv1.ContainerResources{main()}},
		"one claim does not exist yet":            {somePod("named", "late"), []*podresourcesv1.ContainerResources{main()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := resourcesOf(slimPod(test.pod), func(_ *corev1.Pod, claim string) *claiminfo.Info {
				if claim == "unprepared" {
					return nil
				}
				return someClaim(claim)
			})
			require.Equal(t, &podresourcesv1.PodResources{Namespace: "ns", Name: "pod", Containers: test.want}, got)
		})
	}
}

// templatesOf are drivers with templates, which return a CDI device for each device but nic-0.
type templatesOf []string

func (t templatesOf) Has(driver string) bool { return slices.Contains(t, driver) }

func (t templatesOf) CDIDeviceIDs(_ *corev1.Pod, claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) ([]string, error) {
	if result.Device == "nic-0" {
		return nil, errors.New("its template is gone")
	}
	return []string{"k8s." + result.Driver + "/claim=" + string(claim.UID) + "-" + result.Device}, nil
}

// TestAddTemplates: what templates describe is prepared for a Pod once the Pod says so, beside what real drivers have prepared.
func TestAddTemplates(t *testing.T) {
	t.Parallel()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid"},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "a", Driver: "fake.example.com", Pool: "node", Device: "gpu-0"},
			{Request: "b", Driver: "fake.example.com", Pool: "node", Device: "gpu-1", ShareID: new(types.UID("share"))},
			{Request: "c", Driver: "cpu.example.com", Pool: "node", Device: "cpu-7"},
			{Request: "d", Driver: "nic.example.com", Pool: "node", Device: "nic-0"},
		}}}},
	}
	fake := claiminfo.DriverState{Devices: []claiminfo.Device{
		{PoolName: "node", DeviceName: "gpu-0", RequestNames: []string{"a"}, CDIDeviceIDs: []string{"k8s.fake.example.com/claim=uid-gpu-0"}},
		{PoolName: "node", DeviceName: "gpu-1", RequestNames: []string{"b"}, ShareID: new(types.UID("share")), CDIDeviceIDs: []string{"k8s.fake.example.com/claim=uid-gpu-1"}},
	}}
	nic := claiminfo.DriverState{Devices: []claiminfo.Device{{PoolName: "node", DeviceName: "nic-0", RequestNames: []string{"d"}}}}

	info := AddTemplates(someClaim("claim"), somePod(), claim, templatesOf{"fake.example.com", "nic.example.com"})
	require.Equal(t, map[string]claiminfo.DriverState{
		"fake.example.com": fake, "nic.example.com": nic,
		"gpu.example.com": someClaim("claim").DriverState["gpu.example.com"], "cpu.example.com": someClaim("claim").DriverState["cpu.example.com"],
	}, info.DriverState, "the driver of CPUs is a real one on this node")

	info = AddTemplates(nil, somePod(), claim, templatesOf{"fake.example.com"})
	require.Equal(t, &claiminfo.Info{ClaimUID: "uid", Namespace: "ns", ClaimName: "claim", DriverState: map[string]claiminfo.DriverState{"fake.example.com": fake}}, info)

	starting := somePod()
	starting.Status.Conditions = nil
	require.Nil(t, AddTemplates(nil, starting, claim, templatesOf{"fake.example.com"}))
	require.Nil(t, AddTemplates(nil, somePod(), nil, templatesOf{"fake.example.com"}))
}
