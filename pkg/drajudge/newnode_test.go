package drajudge

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestFitsNewNode asks whether Pods fit a node with two GPUs, together and alone.
func TestFitsNewNode(t *testing.T) {
	t.Parallel()
	node := &NewNode{
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{"size": "small"}},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		},
		Slices: []*resourcev1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: new("new"), Pool: resourcev1.ResourcePool{Name: "new", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}},
		}}},
	}
	observer := NewObserver(Options{})
	for _, event := range newStory().history {
		require.Empty(t, observer.Observe(t.Context(), event))
	}
	for name, count := range map[string]int64{"one": 1, "other-one": 1, "two": 2, "three": 3} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: gpuClass().Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}}}
		if name == "two" {
			claim.Status.Allocation = &resourcev1.AllocationResult{}
		}
		observer.Observe(t.Context(), Event{Type: watch.Added, Object: claim})
	}
	with := func(claims ...string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
		for _, claim := range claims {
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: claim, ResourceClaimName: new(claim)})
		}
		return pod
	}
	selecting, withVolume := with("one"), with("one")
	selecting.Spec.NodeSelector = map[string]string{"size": "large"}
	withVolume.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
	for name, c := range map[string]struct {
		pods          []*corev1.Pod
		fits, isClear bool
	}{
		"all devices, allocated elsewhere": {[]*corev1.Pod{with("two")}, true, true},
		"too many devices":                 {[]*corev1.Pod{with("three")}, false, true},
		"one each":                         {[]*corev1.Pod{with("one"), with("other-one")}, true, true},
		"too many together":                {[]*corev1.Pod{with("one"), with("two")}, false, true},
		"no claims":                        {[]*corev1.Pod{with(), with()}, true, true},
		"too many Pods":                    {[]*corev1.Pod{with(), with(), with()}, false, true},
		"another node":                     {[]*corev1.Pod{selecting}, false, true},
		"a claim that does not exist":      {[]*corev1.Pod{with("none")}, false, false},
		"what nobody judges":               {[]*corev1.Pod{withVolume}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			fits, isClear := node.Fits(t.Context(), observer, c.pods...)
			require.Equal(t, [2]bool{c.fits, c.isClear}, [2]bool{fits, isClear})
		})
	}
}
