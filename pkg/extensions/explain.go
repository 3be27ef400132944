package extensions

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/app"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
	"github.com/kwok-dra/kwok-dra/pkg/why"
)

// maxExplained is how many nodes there may be for the sidecar to say why Pods wait: the
// allocator wants all slices and claims decoded, which no cache has.
const maxExplained = 2000

// explanations say why Pods wait: to those who ask, and in events.
type explanations struct {
	pods    *driverPods
	drivers *realDrivers
	// after is how long a Pod with claims has no node before an event says why, or 0.
	after time.Duration
	core  *app.Core
}

func (e *explanations) extension() app.Extension {
	return app.Extension{
		FlagsAfter: "tls-private-key-file",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.DurationVar(&e.after, "explain-pods-after", e.after,
				"write an event on Pods with claims that have no node after this time, such as 1m, which says why; it lists the whole cluster for that, of up to 2,000 nodes; 0: no events")
		},
		Complete: func(*app.Options) error {
			if e.after < 0 {
				return fmt.Errorf("parse --explain-pods-after %s: must be a time such as 1m, or 0 for no events", e.after)
			}
			return nil
		},
		Start: func(core *app.Core) {
			e.core = core
			if e.after > 0 {
				explainer := &explainer{after: e.after, leads: core.Owner.Leads, whole: e.whole, recorder: core.Recorder}
				explainer.unscheduled = func(ctx context.Context) ([]*corev1.Pod, error) { return unscheduledPods(ctx, core.Client) }
				core.Add(app.Part{Run: explainer.run})
			}
		},
	}
}

// explain says why Pods wait, as kwok-dractl why does. It leaves out those that do not exist.
func (e *explanations) explain(ctx context.Context, names []types.NamespacedName) ([]*why.Answer, error) {
	var pods []*corev1.Pod
	for _, name := range names {
		pod, err := e.core.Client.CoreV1().Pods(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
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
	known, err := e.whole(ctx)
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
func (e *explanations) whole(ctx context.Context) (*why.Cluster, error) {
	if nodes := len(e.core.Caches.Nodes.Keys()); nodes > maxExplained {
		return nil, fmt.Errorf("there are %d nodes, and kwok-dra explains up to %d: ask kwok-dractl why", nodes, maxExplained)
	}
	known, _, err := why.Read(ctx, e.core.Client, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	known.Now = time.Now()
	if set := e.core.Config.Current(); set != nil {
		known.Configure(set, e.core.Managed, func(node *corev1.Node) devices.Pods { return e.pods.On(node.Name) })
		if e.drivers.Enabled() {
			known.Sidecar.Registered = func(_ context.Context, node *corev1.Node, driver string) (bool, error) {
				return e.drivers.Driver(nil, node, set.HasDriver).Registered(driver)
			}
		}
	}
	return known, nil
}
