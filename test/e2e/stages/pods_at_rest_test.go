package stages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// atRest has Pods run on a node with the profile of the example driver. Their status must become
// what a kubelet 1.36 writes with that driver, without times, addresses, and names and ids that
// differ each time: testdata has it.
var atRest = map[string]func(*corev1.Pod){
	"init-container":    withInitContainer,
	"two-claims":        withTwoClaims,
	"extended-resource": withExtendedResource,
}

func testAtRest(name string, change func(*corev1.Pod)) func(*harness.H) {
	return func(h *harness.H) {
		exampleNode(h, name)
		h.Namespace(name, harness.Driver)
		h.CreateClaim(name, "one", requests(name, "first"))
		h.CreateClaim(name, "two", requests(name, "first", "second"))
		pod := quickPod(name, name)
		change(pod)
		h.CreatePod(name, pod)
		pod = h.PodEventually(name, name, rests)
		require.YAMLEq(h, wantAtRest(h, name), withoutIdentity(h, pod.Status))
	}
}

// exampleNode creates a node with the devices of the profile gpu-example.
func exampleNode(h *harness.H, name string) {
	h.Helper()
	profile, err := os.ReadFile(filepath.Join(sidecar.Root(), "kustomize", "profiles", "gpu-example", "template.yaml"))
	require.NoError(h, err)
	h.Configure("gpu-example", string(profile))
	node := harness.FakeNode(name, name)
	node.Labels["dra.kwok.x-k8s.io/profile"] = "gpu-example"
	node.Annotations["node-dra-plugin-register.stage.kwok.x-k8s.io/delay"] = "500ms"
	_, err = h.Client.CoreV1().Nodes().Create(h.Context(), node, metav1.CreateOptions{})
	require.NoError(h, err)
	h.Published(name, harness.Driver, 8)
}

// requests claims one device of the class for each name of a request.
func requests(class string, names ...string) resourcev1.ResourceClaimSpec {
	spec := resourcev1.ResourceClaimSpec{}
	for _, name := range names {
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
		})
	}
	return spec
}

// mount mounts a volume as a kubelet does the token of the ServiceAccount.
func mount(pod *corev1.Pod) {
	pod.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{
		Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true,
	}}
}

func withInitContainer(pod *corev1.Pod) {
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &pod.Name}}
	container := &pod.Spec.Containers[0]
	container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	init := container.DeepCopy()
	init.Name = "i"
	pod.Spec.InitContainers = []corev1.Container{*init}
	for _, stage := range []string{"pod-init-container-running", "pod-init-container-completed"} {
		pod.Annotations[stage+".stage.kwok.x-k8s.io/delay"] = "100ms"
		pod.Annotations[stage+".stage.kwok.x-k8s.io/jitter-delay"] = "100ms"
	}
}

func withTwoClaims(pod *corev1.Pod) {
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "a", ResourceClaimName: new("one")}, {Name: "b", ResourceClaimName: new("two")},
	}
	second := pod.Spec.Containers[0].DeepCopy()
	second.Name, second.Resources = "d", corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		Claims:   []corev1.ResourceClaim{{Name: "b", Request: "first"}, {Name: "b", Request: "second"}},
	}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "a"}}
	pod.Spec.Containers = append(pod.Spec.Containers, *second)
}

func withExtendedResource(pod *corev1.Pod) {
	name := corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + pod.Name)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
}

// rests reports whether nothing more is written to a Pod that runs.
func rests(pod *corev1.Pod) bool {
	for i, status := range pod.Status.ContainerStatuses {
		if len(status.AllocatedResourcesStatus) < len(pod.Spec.Containers[i].Resources.Claims) {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

// wantAtRest is the status on a real node. Kubelets before 1.36 do not report the resources of
// a Pod.
func wantAtRest(h *harness.H, name string) string {
	h.Helper()
	document, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	require.NoError(h, err)
	status := map[string]any{}
	require.NoError(h, yaml.Unmarshal(document, &status))
	if harness.KubernetesMinor() < 36 {
		delete(status, "resources")
		delete(status, "allocatedResources")
	}
	want, err := yaml.Marshal(status)
	require.NoError(h, err)
	return string(want)
}

// identity are the fields that differ between Pods that are alike, and those that are not a
// kubelet's.
var identity = []string{
	"startTime", "lastProbeTime", "lastTransitionTime", "startedAt", "finishedAt", "hostIP", "hostIPs", "podIP", "podIPs",
	"imageID", "resourceClaimStatuses", "extendedResourceClaimStatus",
}

// withoutIdentity is a status without those fields and kwok-dra's own conditions. Conditions
// are in no order.
func withoutIdentity(h *harness.H, status corev1.PodStatus) string {
	h.Helper()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return strings.Contains(string(c.Type), "kwok") })
	slices.SortFunc(status.Conditions, func(a, b corev1.PodCondition) int { return strings.Compare(string(a.Type), string(b.Type)) })
	encoded, err := json.Marshal(status)
	require.NoError(h, err)
	var fields any
	require.NoError(h, json.Unmarshal(encoded, &fields))
	encoded, err = yaml.Marshal(forget(fields))
	require.NoError(h, err)
	return string(encoded)
}

func forget(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = forget(v[i])
		}
	case map[string]any:
		for key, field := range v {
			if v[key] = forget(field); slices.Contains(identity, key) {
				delete(v, key)
			}
		}
	}
	return value
}
