package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/why"
)

// maxExplained is how many nodes there may be for the sidecar to say why Pods wait: the
// allocator wants all slices and claims decoded, which no cache has.
const maxExplained = 2000

// explain says why a Pod waits, as kwok-dractl why does.
func (s *sidecar) explain(ctx context.Context, namespace, name string) (*why.Answer, error) {
	pod, err := s.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	known, err := s.whole(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("explain pod %s/%s: %w", namespace, name, err)
	}
	return known.Answer(ctx, pod), nil
}

// whole reads the cluster, and the events of a namespace, or of all.
func (s *sidecar) whole(ctx context.Context, namespace string) (*why.Cluster, error) {
	if nodes := len(s.caches.Nodes.Keys()); nodes > maxExplained {
		return nil, fmt.Errorf("there are %d nodes, and kwok-dra explains up to %d: ask kwok-dractl why", nodes, maxExplained)
	}
	known, _, err := why.Read(ctx, s.client, namespace)
	if err != nil {
		return nil, err
	}
	known.Now = time.Now()
	if set := s.store.Current(); set != nil {
		known.Configure(set, &s.options.Managed, func(node *corev1.Node) devices.Pods { return s.caches.DriverPods.On(node.Name) })
		if s.kubelets.Enabled() {
			known.Sidecar.Registered = func(_ context.Context, node *corev1.Node, driver string) (bool, error) {
				return s.kubelets.Driver(nil, node, set.HasDriver).Registered(driver)
			}
		}
	}
	return known, nil
}

// addExplainer has events say why Pods have no node.
func (s *sidecar) addExplainer(after time.Duration, recorder record.EventRecorder) {
	e := &explainer{after: after, leads: s.owner.Leads, unscheduled: s.unscheduled, recorder: recorder}
	e.whole = func(ctx context.Context) (*why.Cluster, error) { return s.whole(ctx, metav1.NamespaceAll) }
	s.parts = append(s.parts, part{run: e.run})
}
