package drajudge

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSuitsPod: what keeps a Pod from a node besides devices is no violation.
func TestSuitsPod(t *testing.T) {
	t.Parallel()
	type (
		node = *corev1.Node
		pod  = *corev1.Pod
	)
	for name, change := range map[string]func(node node, pod, other pod){
		"nothing": func(node, pod, pod) {},
		"taint": func(node node, _, _ pod) {
			node.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoExecute}}
		},
		"toleration of another value": func(node node, pod, _ pod) {
			node.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
			pod.Spec.Tolerations = []corev1.Toleration{{Key: "a", Value: "c"}}
		},
		"cordon":        func(node node, _, _ pod) { node.Spec.Unschedulable = true },
		"deletion":      func(node node, _, _ pod) { node.DeletionTimestamp = &metav1.Time{} },
		"node selector": func(_ node, pod, _ pod) { pod.Spec.NodeSelector = map[string]string{"name": "node-2"} },
		"node affinity": func(_ node, pod, _ pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: labelledNode("node-2")}}
		},
		"CPU": func(_ node, pod, _ pod) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
		},
		"CPU of others": func(_ node, _, other pod) {
			other.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("4")
		},
		"init container": func(_ node, pod, _ pod) { pod.Spec.InitContainers = pod.Spec.Containers },
		"limit": func(_ node, pod, _ pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/dongle": resource.MustParse("1")}
		},
		"overhead":       func(_ node, pod, _ pod) { pod.Spec.Overhead = pod.Spec.Containers[0].Resources.Requests },
		"Pod resources":  func(_ node, pod, _ pod) { pod.Spec.Resources = &pod.Spec.Containers[0].Resources },
		"number of Pods": func(node node, _, _ pod) { node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1") },
		"nomination": func(_ node, _, other pod) {
			other.Spec.NodeName, other.Status.NominatedNodeName = "", "node-1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"name": "node-1"}}}
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5"), corev1.ResourcePods: resource.MustParse("10")}
			pods := []*corev1.Pod{podWith("pod", "a"), podWith("other")}
			for _, pod := range pods {
				pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
			}
			pods[1].Spec.NodeName = "node-1"
			ended := podWith("ended")
			ended.Spec, ended.Status.Phase = *pods[1].Spec.DeepCopy(), corev1.PodSucceeded
			change(node, pods[0], pods[1])

			s := &story{}
			s.create(node, gpuClass(), sliceOf(gpus(1)...), claimWith("a", requestFor("r", 1)), pods[0], pods[1], ended)
			observer := NewObserver(Options{})
			for _, event := range s.history {
				require.Empty(t, observer.Observe(t.Context(), event))
			}
			found := observer.AtRest(t.Context())
			if name != "nothing" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []string{podPlaced}, statementIDs(found))
			require.Equal(t, "it waits, and fits node node-1, claim a with r gpu.example.com/node-1/gpu-0", found[0].Evidence)
		})
	}
}

// TestOtherDemands: the judge does not judge Pods that want more than it understands.
func TestOtherDemands(t *testing.T) {
	t.Parallel()
	require.False(t, hasOtherDemands(podWith("pod")))
	antiAffinity := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}
	for _, spec := range []corev1.PodSpec{
		{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}},
		{Affinity: &corev1.Affinity{PodAntiAffinity: antiAffinity}},
		{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}},
		{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}},
		{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: 80}}}}},
		{SchedulingGroup: &corev1.PodSchedulingGroup{}},
	} {
		require.True(t, hasOtherDemands(&corev1.Pod{Spec: spec}), "%v", spec)
	}
}
