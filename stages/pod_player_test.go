package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

// podPlayer plays Stages on a Pod that has just been bound, and a sidecar if it
// is given one.
type podPlayer struct {
	*player[*corev1.Pod]
	sidecar *sidecar
	// seen are the states that the Pod has been in, without times.
	seen []podState
}

type podState struct {
	phase, start, ready string
}

func newPodPlayer(t *testing.T, pod *corev1.Pod, set *config.Set, stages ...[]string) *podPlayer {
	t.Helper()
	p := &podPlayer{player: newPlayer(t, func() *corev1.Pod { return &corev1.Pod{} }, stages...)}
	p.object = pod
	p.object.CreationTimestamp = metav1.NewTime(p.now)
	if set != nil {
		p.sidecar = &sidecar{set: set, p: p}
	}
	p.changed = p.note
	p.pick()
	return p
}

func (p *podPlayer) note() {
	state := podState{string(p.object.Status.Phase), p.status(corev1.PodReadyToStartContainers), p.status(corev1.PodReady)}
	if len(p.seen) == 0 || p.seen[len(p.seen)-1] != state {
		p.seen = append(p.seen, state)
	}
	p.other = nil
	if p.sidecar != nil {
		p.other = p.sidecar.next()
	}
}

func (p *podPlayer) condition(kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range p.object.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}

func (p *podPlayer) status(kind corev1.PodConditionType) string {
	return string(p.condition(kind).Status)
}

// delete deletes the Pod as a user does.
func (p *podPlayer) delete() {
	p.change(func(pod *corev1.Pod) {
		grace := int64(30)
		pod.DeletionTimestamp = &metav1.Time{Time: p.now.Add(30 * time.Second)}
		pod.DeletionGracePeriodSeconds = &grace
	})
}

// untilPhase, untilStatus and untilGone let time pass, and tell how long that
// took.
func (p *podPlayer) untilPhase(phase corev1.PodPhase) time.Duration {
	p.t.Helper()
	return p.until(func() bool { return p.object.Status.Phase == phase }, time.Minute)
}

func (p *podPlayer) untilStatus(kind corev1.PodConditionType, status corev1.ConditionStatus) time.Duration {
	p.t.Helper()
	return p.until(func() bool { return p.status(kind) == string(status) }, time.Minute)
}

func (p *podPlayer) untilGone() time.Duration {
	p.t.Helper()
	return p.until(func() bool { return p.gone }, time.Minute)
}

// container asserts that there is one container and returns its status.
func (p *podPlayer) container() corev1.ContainerStatus {
	p.t.Helper()
	require.Len(p.t, p.object.Status.ContainerStatuses, 1)
	return p.object.Status.ContainerStatuses[0]
}

// requireBetween asserts that something took a random time.
func requireBetween(t *testing.T, low, high, got time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, got, low)
	require.Less(t, got, high)
}

// newPod is a Pod of one container, as it is when it has been bound.
func newPod(how ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-0", Namespace: "default", UID: "3f0c9dc5"},
		Spec: corev1.PodSpec{
			NodeName:   "node-0",
			Containers: []corev1.Container{{Name: "c", Image: "app:1"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range how {
		change(pod)
	}
	return pod
}

func withClaim(pod *corev1.Pod) {
	template := "gpu"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "a", ResourceClaimTemplateName: &template}}
}

func withExtendedResource(pod *corev1.Pod) {
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "er-0"}
}

// withResources gives all containers requests and a mount.
func withResources(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			containers[i].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}
	}
}

func withInitContainer(pod *corev1.Pod) {
	pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "init:1"}}
}

func ofJob(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job-0", UID: "5a1b"}}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
}

func withLabel(stage string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, stage+".stage.kwok.x-k8s.io", "true")
	}
}
