package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/why"
)

// maxExplained is how many nodes there may be for the sidecar to say why Pods wait: the
// allocator wants all slices and claims decoded, which no cache has.
const maxExplained = 2000

// explain says why Pods wait, as kwok-dractl why does. It leaves out those that do not exist.
func (s *sidecar) explain(ctx context.Context, names []types.NamespacedName) ([]*why.Answer, error) {
	var pods []*corev1.Pod
	for _, name := range names {
		pod, err := s.client.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get pod %s: %w", name, err)
		}
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		return nil, nil
	}
	known, err := s.whole(ctx)
	if err != nil {
		return nil, err
	}
	var answers []*why.Answer
	for _, pod := range pods {
		answers = append(answers, known.Answer(ctx, pod))
	}
	return answers, nil
}

// whole reads the cluster.
func (s *sidecar) whole(ctx context.Context) (*why.Cluster, error) {
	if nodes := len(s.caches.Nodes.Keys()); nodes > maxExplained {
		return nil, fmt.Errorf("there are %d nodes, and kwok-dra explains up to %d: ask kwok-dractl why", nodes, maxExplained)
	}
	known, _, err := why.Read(ctx, s.client, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	known.Now = time.Now()
	if set := s.store.Current(); set != nil {
		known.Configure(set, &s.options.Managed, func(node *corev1.Node) devices.Pods { return s.driverPods.On(node.Name) })
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
	e.whole = s.whole
	s.parts = append(s.parts, part{run: e.run})
}
