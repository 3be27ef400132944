package nodeload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newPod is a Pod on node-0 with a token and a claim, as the API server makes it.
func newPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "pod-uid", ResourceVersion: "1"},
		Spec: corev1.PodSpec{
			NodeName: "node-0", ServiceAccountName: "default",
			Containers:     []corev1.Container{{Name: "c"}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpus")}},
			Volumes: []corev1.Volume{{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
			}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// story sends the states of a Pod through planPod.
type story struct {
	record  podRecord
	pod     *corev1.Pod
	version int
}

// after returns what is planned once a change of the Pod is seen, in words.
func (s *story) after(change func(pod *corev1.Pod)) string {
	s.version++
	s.pod.ResourceVersion = fmt.Sprint(s.version)
	change(s.pod)
	var steps []step
	s.record, steps = planPod(s.record, viewPod(s.pod.DeepCopy()), time.Unix(0, 0))
	return inWords(steps)
}

func inWords(steps []step) string {
	var words []string
	for _, s := range steps {
		word := "prepare"
		if s.request != nil {
			word = s.request.verb + " " + s.request.resource
		}
		if s.after > 0 {
			word += " after " + s.after.String()
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func asIs(*corev1.Pod) {}

// setCondition is a write of the status.
func setCondition(kind corev1.PodConditionType) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

func setPhase(phase corev1.PodPhase) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

func setDeleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }

const (
	whenSeen   = "get pods, create serviceaccounts/token after 160ms, prepare after 290ms"
	readWrite  = "get pods, patch pods/status"
	containers = "create events, create events, create events"
)

// TestPlanPodOfFastStages tops up the two writes of kwok and kwok-dra to the kubelet's three, each with a read.
func TestPlanPodOfFastStages(t *testing.T) {
	t.Parallel()
	s := story{pod: newPod()}
	require.Equal(t, whenSeen, s.after(asIs))
	require.Empty(t, s.after(setCondition(corev1.PodReadyToStartContainers)), "the read before the first write has been sent")
	require.Equal(t, "get pods, "+readWrite+", "+containers, s.after(setPhase(corev1.PodRunning)))
	require.Empty(t, s.after(setCondition(statusWriteCondition)), "our own write is none of the node's")
	require.Equal(t, "get pods, create events", s.after(setDeleted))
}

// TestPlanPodOfGeneralStages sends reads only: the Stages write as often as a kubelet.
func TestPlanPodOfGeneralStages(t *testing.T) {
	t.Parallel()
	s := story{pod: newPod()}
	require.Equal(t, whenSeen, s.after(asIs))
	require.Empty(t, s.after(setCondition(corev1.PodInitialized)))
	require.Equal(t, "get pods", s.after(setCondition(corev1.PodReadyToStartContainers)))
	require.Equal(t, "get pods, "+containers, s.after(setPhase(corev1.PodRunning)))
	require.Equal(t, "get pods", s.after(setCondition(corev1.ContainersReady)), "containers end")
	require.Equal(t, "get pods", s.after(setPhase(corev1.PodSucceeded)))
	require.Empty(t, s.after(setDeleted), "it has ended")
}

// TestPlanPodWithoutClaims tops up a single write.
func TestPlanPodWithoutClaims(t *testing.T) {
	t.Parallel()
	s := story{pod: newPod()}
	s.pod.Spec.ResourceClaims, s.pod.Spec.Volumes = nil, nil
	require.Equal(t, "get pods", s.after(asIs))
	require.Equal(t, readWrite+", "+readWrite+", "+containers, s.after(setPhase(corev1.PodRunning)))
	require.Equal(t, "get pods, "+readWrite, s.after(setPhase(corev1.PodSucceeded)), "kwok writes once, a kubelet twice")
}

// TestPlanPodThatRuns asks for a token as a kubelet does that starts, and plays none of its story.
func TestPlanPodThatRuns(t *testing.T) {
	t.Parallel()
	s := story{pod: newPod()}
	s.pod.Status.Phase = corev1.PodRunning
	require.Equal(t, "create serviceaccounts/token after 160ms", s.after(asIs))
	require.Empty(t, s.after(setCondition(corev1.ContainersReady)))
	require.Empty(t, s.after(setDeleted))
	s = story{pod: newPod()}
	require.Empty(t, s.after(setPhase(corev1.PodFailed)))
}

// TestPlanPodIgnoresOldStates, which a handler may get after the list that a node starts with.
func TestPlanPodIgnoresOldStates(t *testing.T) {
	t.Parallel()
	s := story{pod: newPod(), version: 10}
	require.Equal(t, whenSeen, s.after(asIs))
	s.version = 5
	require.Empty(t, s.after(setCondition(corev1.PodInitialized)))
	require.Zero(t, s.record.started)
}

// TestPlanPrepare reads a claim once for each of our drivers, unless the kubelet has prepared it already.
func TestPlanPrepare(t *testing.T) {
	t.Parallel()
	claim := func(name string, drivers ...string) *resourcev1.ResourceClaim {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
		if drivers != nil {
			claim.Status.Allocation = &resourcev1.AllocationResult{}
		}
		for _, driver := range drivers {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: driver})
		}
		return claim
	}
	reads := planPrepare([]*resourcev1.ResourceClaim{claim("two", "x", "y"), claim("twice", "x", "x"), claim("shared", "x"), claim("real", "z"), claim("free")},
		func(uid types.UID) bool { return uid == "shared" },
		func(result *resourcev1.DeviceRequestAllocationResult) bool { return result.Driver != "z" })
	paths := map[string][]string{}
	for driver, requests := range reads {
		for _, r := range requests {
			paths[driver] = append(paths[driver], r.path[strings.LastIndex(r.path, "/")+1:])
		}
	}
	require.Equal(t, map[string][]string{"x": {"two", "twice"}, "y": {"two"}}, paths)
}

// TestViewPodFindsMounts of volumes, variables and pull secrets, each once.
func TestViewPodFindsMounts(t *testing.T) {
	t.Parallel()
	pod := newPod()
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
		corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}})
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
	pod.Spec.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "word"}}}}}}}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	require.Equal(t, []mount{
		{"configmaps", "default", "kube-root-ca.crt"}, {"secrets", "default", "key"}, {"secrets", "default", "word"}, {"configmaps", "default", "env"}, {"secrets", "default", "pull"},
	}, viewPod(pod).mounts)
}
