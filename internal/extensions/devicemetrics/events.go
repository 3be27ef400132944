package devicemetrics

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/devicemetrics/usage"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TellMistakes records an event for each mistake in annotations of Pods, once for each edit. Call it
// before the caches run.
func TellMistakes(caches *observe.Caches, owner *shard.Owner, recorder record.EventRecorder) {
	report := func(old, pod *observe.Pod) {
		if !mayBeAnnotated(pod) || !caches.Nodes.Has(pod.Node) || !owner.Acts(pod.Node, true) {
			return
		}
		now := pod.Decode()
		if err := parseError(now); err != nil && (old == nil || !hasSameUsage(old, now)) {
			recorder.Event(now, corev1.EventTypeWarning, v1alpha1.ReasonInvalidUsage, v1alpha1.EventMessage(err))
		}
	}
	caches.Pods.Handle(cache.TypedResourceEventHandlerFuncs[*observe.Pod]{
		AddFunc:    func(pod *observe.Pod) { report(nil, pod) },
		UpdateFunc: report,
	})
}

// mayBeAnnotated reports whether a Pod may have an annotation for usage, without decoding it: most have none.
func mayBeAnnotated(pod *observe.Pod) bool {
	return strings.Contains(pod.Encoded, v1alpha1.UsageGPUAnnotation) || strings.Contains(pod.Encoded, v1alpha1.UsageMemoryAnnotation)
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

// hasSameUsage reports whether a Pod had the same annotations for usage before, on the same node.
func hasSameUsage(old *observe.Pod, now *corev1.Pod) bool {
	if !old.HasClaims() || old.Node != now.Spec.NodeName {
		return false
	}
	before := old.Decode().Annotations
	return before[v1alpha1.UsageGPUAnnotation] == now.Annotations[v1alpha1.UsageGPUAnnotation] &&
		before[v1alpha1.UsageMemoryAnnotation] == now.Annotations[v1alpha1.UsageMemoryAnnotation]
}
