package drajudge

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFitOnNewNode asks whether Pods fit a node with two GPUs, together and alone.
func TestFitOnNewNode(t *testing.T) {
	t.Parallel()
	observer := NewObserver(Options{})
	for _, event := range newStory().history {
		require.Empty(t, observer.Observe(t.Context(), event))
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{"size": "small"}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: new("new"), Pool: resourcev1.ResourcePool{Name: "new", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}},
	}}
	claim := func(name string, count int64) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: gpuClass().Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}}}
		return c
	}
	elsewhere := claim("elsewhere", 2)
	elsewhere.Status.Allocation = &resourcev1.AllocationResult{}
	plain, selecting, picky := &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}
	selecting.Spec.NodeSelector = map[string]string{"size": "large"}
	picky.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
	for name, c := range map[string]struct {
		pods          []*corev1.Pod
		claims        []*resourcev1.ResourceClaim
		fits, isClear bool
	}{
		"all devices":        {[]*corev1.Pod{plain}, []*resourcev1.ResourceClaim{claim("a", 2)}, true, true},
		"too many":           {[]*corev1.Pod{plain}, []*resourcev1.ResourceClaim{claim("a", 3)}, false, true},
		"one each":           {[]*corev1.Pod{plain, plain}, []*resourcev1.ResourceClaim{claim("a", 1), claim("b", 1)}, true, true},
		"not both":           {[]*corev1.Pod{plain, plain}, []*resourcev1.ResourceClaim{claim("a", 1), claim("b", 2)}, false, true},
		"allocated already":  {[]*corev1.Pod{plain}, []*resourcev1.ResourceClaim{elsewhere}, true, true},
		"no claims":          {[]*corev1.Pod{plain, plain}, nil, true, true},
		"too many Pods":      {[]*corev1.Pod{plain, plain, plain}, nil, false, true},
		"another node":       {[]*corev1.Pod{selecting}, []*resourcev1.ResourceClaim{claim("a", 1)}, false, true},
		"what nobody judges": {[]*corev1.Pod{picky}, []*resourcev1.ResourceClaim{claim("a", 1)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			fits, isClear := observer.FitOnNewNode(t.Context(), node, []*resourcev1.ResourceSlice{slice}, c.pods, c.claims)
			require.Equal(t, [2]bool{c.fits, c.isClear}, [2]bool{fits, isClear})
		})
	}
}
