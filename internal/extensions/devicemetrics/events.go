package devicemetrics

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicemetrics/usage"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// MistakeReporter writes an event for each mistake in annotations of Pods.
type MistakeReporter struct {
	MistakeOptions

	loop *loop.Loop[types.NamespacedName]
}

// MistakeOptions configure a MistakeReporter. All but Owner are required.
type MistakeOptions struct {
	Client kubernetes.Interface
	// The caller runs Caches and Owner.
	Caches *observe.Caches
	Owner  *shard.Owner
}

// NewMistakeReporter makes a MistakeReporter; Run starts it.
func NewMistakeReporter(o MistakeOptions) *MistakeReporter {
	r := &MistakeReporter{MistakeOptions: o}
	r.loop = loop.New("usage-mistakes", r.reconcile)
	r.Caches.Pods.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Pod]{
		AddFunc: r.enqueue,
		UpdateFunc: func(old, pod *observe.Pod) {
			if usageAnnotations(old) != usageAnnotations(pod) {
				r.enqueue(pod)
			}
		},
	})
	r.Caches.Nodes.Handle(func(name string, old, now *observe.Node) { // which may come after its Pods
		if now != nil && now.IsFake && (old == nil || !old.IsFake) {
			r.enqueueNode(name)
		}
	})
	r.Owner.OnChange(r.enqueueNode, func() {
		for pod := range r.Caches.Pods.All() {
			r.enqueue(pod)
		}
	})
	return r
}

func (r *MistakeReporter) enqueue(pod *observe.Pod) {
	if mayBeAnnotated(pod) {
		r.loop.Add(observe.Key(pod))
	}
}

func (r *MistakeReporter) enqueueNode(name string) {
	for _, pod := range r.Caches.Pods.On(name) {
		r.enqueue(pod)
	}
}

// CheckHealth returns an error if the MistakeReporter is stuck.
func (r *MistakeReporter) CheckHealth() error { return r.loop.CheckHealth() }

// Run reports until ctx ends, with that many workers.
func (r *MistakeReporter) Run(ctx context.Context, workers int) {
	cache.WaitFor(ctx, "", slices.Concat(r.Caches.Synced(), r.Owner.Synced())...)
	r.loop.Run(ctx, workers)
}

func (r *MistakeReporter) reconcile(ctx context.Context, key types.NamespacedName) error {
	pod := r.Caches.Pods.Get(key)
	if pod == nil || !r.Caches.Nodes.Has(pod.Spec.NodeName) || !r.Owner.Acts(pod.Spec.NodeName, true) {
		return nil
	}
	mistake := parseError(pod)
	if mistake == nil {
		return nil
	}
	_, err := r.Client.CoreV1().Events(pod.Namespace).Create(ctx, newMistakeEvent(pod, v1alpha1.EventMessage(mistake)), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write event %s of pod %s: %w", v1alpha1.ReasonInvalidUsage, key, err)
	}
	return nil
}

// maxNamePart is how much of the name of a Pod is in the name of an event, which must not be longer than that of a Pod.
const maxNamePart = 200

// newMistakeEvent makes an event that is named by its content, so that the API server refuses the same one after a restart.
func newMistakeEvent(pod *corev1.Pod, message string) *corev1.Event {
	now, sum := metav1.Now(), sha256.Sum256([]byte(string(pod.UID)+message))
	name := strings.TrimRight(pod.Name[:min(len(pod.Name), maxNamePart)], "-.")
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", name, sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Reason: v1alpha1.ReasonInvalidUsage, Message: message, Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: v1alpha1.ManagedByValue}, ReportingController: v1alpha1.ManagedByValue,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

// mayBeAnnotated reports whether a Pod may have an annotation for usage, without decoding it: most have none.
func mayBeAnnotated(pod *observe.Pod) bool {
	return strings.Contains(pod.Encoded, v1alpha1.UsageGPUAnnotation) || strings.Contains(pod.Encoded, v1alpha1.UsageMemoryAnnotation)
}

// usageAnnotations returns the texts of a Pod's annotations for usage.
func usageAnnotations(pod *observe.Pod) (texts [2]string) {
	if mayBeAnnotated(pod) {
		annotations := pod.Decode().Annotations
		texts = [2]string{annotations[v1alpha1.UsageGPUAnnotation], annotations[v1alpha1.UsageMemoryAnnotation]}
	}
	return texts
}

func parseError(pod *corev1.Pod) error {
	_, err := usage.Parse(pod.Annotations)
	if err == nil {
		return nil
	}
	return fmt.Errorf("pod %s: %w; its devices are idle in that respect", observe.Key(pod), flat{err})
}

// flat prints joined errors on one line.
type flat struct{ error }

func (f flat) Error() string { return strings.ReplaceAll(f.error.Error(), "\n", "; ") }

func (f flat) Unwrap() error { return f.error }
