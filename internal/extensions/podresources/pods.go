package podresources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

const byNode = "node"

// newPods makes the cache of bound Pods. The core's cache has the names of containers only for Pods with claims, and a
// kubelet lists all Pods.
func newPods(client kubernetes.Interface) cache.SharedIndexInformer {
	bound := func(options *metav1.ListOptions) { options.FieldSelector = "spec.nodeName!=" }
	indexers := cache.Indexers{byNode: func(object any) ([]string, error) { return []string{object.(*corev1.Pod).Spec.NodeName}, nil }}
	informer := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, indexers, bound)
	if err := informer.SetTransform(func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return slimPod(pod), nil
		}
		return object, nil
	}); err != nil {
		panic("set the transform of an informer that has not been started: " + err.Error())
	}
	return informer
}

// slimPod keeps what answers are made of.
func slimPod(pod *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, ResourceClaims: pod.Spec.ResourceClaims},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses, ExtendedResourceClaimStatus: pod.Status.ExtendedResourceClaimStatus,
		},
	}
	if ready := facts.PodCondition(pod, corev1.PodReadyToStartContainers); ready.Status != "" {
		slim.Status.Conditions = []corev1.PodCondition{{Type: ready.Type, Status: ready.Status}}
	}
	slim.Spec.InitContainers = slimContainers(pod.Spec.InitContainers)
	slim.Spec.Containers = slimContainers(pod.Spec.Containers)
	return slim
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, 0, len(containers))
	for _, container := range containers {
		slim = append(slim, corev1.Container{
			Name: container.Name, RestartPolicy: container.RestartPolicy, Resources: corev1.ResourceRequirements{Claims: container.Resources.Claims},
		})
	}
	return slim
}

// podsOn lists the Pods of a node by namespace and name.
func podsOn(pods cache.SharedIndexInformer, node string) []*corev1.Pod {
	objects, err := pods.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		panic("list Pods by node: " + err.Error()) // there is no such index
	}
	found := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		found = append(found, object.(*corev1.Pod))
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}
