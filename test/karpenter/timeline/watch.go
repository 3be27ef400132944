package timeline

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

var nodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// startWatching starts the informers and returns when they have seen what there is.
func (t *Timeline) startWatching(ctx context.Context, client kubernetes.Interface, dynamicClient dynamic.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	var synced []cache.InformerSynced
	for _, err := range []error{
		addHandler(&synced, factory.Core().V1().Pods().Informer(), t.sawPod, t.missedPod),
		addHandler(&synced, factory.Core().V1().Nodes().Informer(), t.sawNode, t.missedNode),
		addHandler(&synced, factory.Resource().V1().ResourceClaims().Informer(), t.sawClaim, func(*resourcev1.ResourceClaim) {}),
		addHandler(&synced, factory.Resource().V1().ResourceSlices().Informer(), t.sawSlice, t.missedSlice),
		addHandler(&synced, dynamicFactory.ForResource(nodeClaims).Informer(), t.sawNodeClaim, func(*unstructured.Unstructured) {}),
	} {
		if err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
	}
	factory.Start(ctx.Done())
	dynamicFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watch the cluster: %w", ctx.Err())
	}
	return nil
}

func addHandler[T any](synced *[]cache.InformerSynced, informer cache.SharedIndexInformer, saw, missed func(T)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { saw(object.(T)) },
		UpdateFunc: func(_, object any) { saw(object.(T)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			missed(object.(T))
		},
	})
	if err != nil {
		return err
	}
	*synced = append(*synced, registration.HasSynced)
	return nil
}

func (t *Timeline) sawPod(pod *corev1.Pod) {
	t.markOnce(PodCreated, pod.Name, "")
	if pod.Spec.NodeName != "" {
		t.markOnce(PodBound, pod.Name, pod.Spec.NodeName)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReadyToStartContainers && condition.Status == corev1.ConditionTrue {
			t.markOnce(PodPrepared, pod.Name, pod.Spec.NodeName)
		}
	}
	if pod.Status.Phase == corev1.PodRunning {
		t.markOnce(PodRunning, pod.Name, pod.Spec.NodeName)
	}
}

func (t *Timeline) missedPod(pod *corev1.Pod) {
	t.markOnce(PodGone, pod.Name, pod.Spec.NodeName)
}

func (t *Timeline) sawNode(node *corev1.Node) {
	t.markOnce(NodeCreated, node.Name, node.Labels[corev1.LabelInstanceTypeStable])
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			t.markOnce(NodeReady, node.Name, "")
		}
	}
}

func (t *Timeline) missedNode(node *corev1.Node) {
	t.markOnce(NodeGone, node.Name, "")
}

func (t *Timeline) sawClaim(claim *resourcev1.ResourceClaim) {
	if claim.Status.Allocation == nil {
		return
	}
	devices := len(claim.Status.Allocation.Devices.Results)
	t.markOnce(ClaimAllocated, claim.Name, fmt.Sprintf("%d of %s", devices, claim.Status.Allocation.Devices.Results[0].Driver))
}

func (t *Timeline) sawNodeClaim(object *unstructured.Unstructured) {
	var claim karpenterv1.NodeClaim
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &claim); err != nil {
		return // of another version; who waits for it says so
	}
	t.markOnce(NodeClaimCreated, claim.Name, claim.Annotations[karpenterv1.DRADriversAnnotationKey])
	for _, condition := range []struct {
		kind string
		step Step
	}{
		{karpenterv1.ConditionTypeLaunched, NodeClaimLaunched},
		{karpenterv1.ConditionTypeRegistered, NodeClaimRegistered},
		{karpenterv1.ConditionTypeInitialized, NodeClaimInitialized},
	} {
		if claim.StatusConditions().IsTrue(condition.kind) {
			t.markOnce(condition.step, claim.Name, claim.Status.NodeName)
		}
	}
	if claim.DeletionTimestamp != nil {
		t.markOnce(NodeClaimDeleted, claim.Name, claim.Status.NodeName)
	}
}
