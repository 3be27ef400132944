package nodeload

import (
	"fmt"
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// podView is what the requests for a Pod depend on.
type podView struct {
	cached.Meta
	node           string
	serviceAccount string
	// audiences has one of each token that the Pod mounts; "" is the API server's.
	audiences  []string
	mounts     []mount
	claims     []types.NamespacedName
	containers []container
	phase      podPhase
	// status is a hash of the status without our own condition.
	status uint64
}

// podPhase is how far a Pod is.
type podPhase int

const (
	podPending podPhase = iota
	podRunning
	podDeleting
	podTerminal
)

// container is a container of a Pod.
type container struct {
	name string
	// isPulled says that the kubelet pulls the image even if the node has it.
	isPulled bool
}

// mount is a ConfigMap or a Secret of a Pod.
type mount struct{ resource, namespace, name string }

const podsByNode = "node"

var podIndexers = cache.TypedIndexers[*podView]{
	podsByNode: func(pod *podView) ([]string, error) { return []string{pod.node}, nil },
}

// newPods makes a cache of the Pods that are bound. That of the core knows little of Pods without claims.
func newPods(client kubernetes.Interface) cached.Informer[*podView] {
	isBound := func(options *metav1.ListOptions) { options.FieldSelector = "spec.nodeName!=" }
	pods := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.TypedIndexersToIndexers(podIndexers), isBound)
	return cached.NewInformer[*podView](pods, cached.Transform(viewPod))
}

func viewPod(pod *corev1.Pod) *podView {
	view := &podView{
		Meta: cached.MetaOf(pod), node: pod.Spec.NodeName, serviceAccount: pod.Spec.ServiceAccountName,
		claims: facts.ClaimKeys(pod), phase: phaseOf(pod), status: hashStatus(&pod.Status),
	}
	for i := range pod.Spec.Volumes {
		view.addVolume(&pod.Spec.Volumes[i])
	}
	for i := range pod.Spec.InitContainers {
		view.addEnvironment(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		view.addEnvironment(&pod.Spec.Containers[i])
		view.containers = append(view.containers, container{pod.Spec.Containers[i].Name, pod.Spec.Containers[i].ImagePullPolicy == corev1.PullAlways})
	}
	for _, secret := range pod.Spec.ImagePullSecrets {
		view.addMount("secrets", secret.Name)
	}
	return view
}

func phaseOf(pod *corev1.Pod) podPhase {
	switch {
	case facts.IsTerminal(pod):
		return podTerminal
	case pod.DeletionTimestamp != nil:
		return podDeleting
	case pod.Status.Phase == corev1.PodRunning:
		return podRunning
	}
	return podPending
}

var statusSeed = maphash.MakeSeed()

// hashStatus hashes a status without the condition that we write.
func hashStatus(status *corev1.PodStatus) uint64 {
	foreign := *status
	foreign.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(condition corev1.PodCondition) bool { return condition.Type == statusWriteCondition })
	data, err := foreign.Marshal()
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	return maphash.Bytes(statusSeed, data)
}

func (p *podView) addMount(resource, name string) {
	if added := (mount{resource, p.Namespace, name}); name != "" && !slices.Contains(p.mounts, added) {
		p.mounts = append(p.mounts, added)
	}
}

func (p *podView) addVolume(volume *corev1.Volume) {
	switch {
	case volume.ConfigMap != nil:
		p.addMount("configmaps", volume.ConfigMap.Name)
	case volume.Secret != nil:
		p.addMount("secrets", volume.Secret.SecretName)
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			switch {
			case source.ConfigMap != nil:
				p.addMount("configmaps", source.ConfigMap.Name)
			case source.Secret != nil:
				p.addMount("secrets", source.Secret.Name)
			case source.ServiceAccountToken != nil:
				p.audiences = append(p.audiences, source.ServiceAccountToken.Audience)
			}
		}
	}
}

func (p *podView) addEnvironment(container *corev1.Container) {
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			p.addMount("configmaps", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			p.addMount("secrets", from.SecretRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			continue
		}
		if from := variable.ValueFrom.ConfigMapKeyRef; from != nil {
			p.addMount("configmaps", from.Name)
		}
		if from := variable.ValueFrom.SecretKeyRef; from != nil {
			p.addMount("secrets", from.Name)
		}
	}
}
