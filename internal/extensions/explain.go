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

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/driverpods"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/selection"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/sidecar"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
)

// maxExplained bounds the nodes of a cluster in which the sidecar says why Pods wait. The
// allocator needs all slices and claims decoded, and no cache holds them so.
const maxExplained = 2000

// explanations say why Pods wait, on request and in events.
type explanations struct {
	pods    *driverPods
	drivers *realDrivers
	core    *app.Core
}

// explainPods says why Pods wait: in events after a time, and to the page.
func explainPods(e *explanations) app.Extension {
	var after time.Duration // 0 means no events
	return app.Extension{
		FlagsAfter:  "server-address",
		ClusterRole: "kwok-dra-explaining",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.DurationVar(&after, "explain-pods-after", after,
				"write an event on Pods with claims that have no node after this time, such as 1m, which says why; it lists the whole cluster for that, of up to 2,000 nodes; 0: no events")
		},
		Complete: func(*app.Options) error {
			if after < 0 {
				return fmt.Errorf("parse --explain-pods-after %s: must be a time such as 1m, or 0 for no events", after)
			}
			return nil
		},
		Start: func(core *app.Core) {
			e.core = core
			if after > 0 {
				events := &eventWriter{after: after, isLeader: core.Owner.Leads, readCluster: e.readWholeCluster, recorder: core.Recorder}
				events.listUnscheduled = func(ctx context.Context) ([]*corev1.Pod, error) { return listUnscheduledPods(ctx, core.Client) }
				core.Add(app.Part{Run: events.runUntilDone})
			}
		},
	}
}

// explainTemplates says why templates select no node.
func explainTemplates() app.Extension {
	return app.Extension{Start: func(core *app.Core) {
		core.Add(app.Part{Run: selection.NewWatcher(core.Config, core.Caches.Nodes, core.Owner, core.ReportUnselected).Run})
	}}
}

// answerPods says why Pods wait, as kwok-dractl why does. It leaves out Pods that do not exist.
func (e *explanations) answerPods(ctx context.Context, names []types.NamespacedName) ([]*why.Answer, error) {
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
	known, err := e.readWholeCluster(ctx)
	if err != nil {
		return nil, err
	}
	var answers []*why.Answer
	for _, pod := range pods {
		answers = append(answers, known.Answer(ctx, pod))
	}
	return answers, ctx.Err()
}

// readWholeCluster reads the whole cluster, unless it is too large.
func (e *explanations) readWholeCluster(ctx context.Context) (*why.Cluster, error) {
	if nodes := len(e.core.Caches.Nodes.Keys()); nodes > maxExplained {
		return nil, fmt.Errorf("there are %d nodes, and kwok-dra explains up to %d: ask kwok-dractl why", nodes, maxExplained)
	}
	known, _, err := why.Read(ctx, e.core.Client, metav1.NamespaceAll)
	if err != nil {
		return nil, err
	}
	known.Now = time.Now()
	if set := e.core.Config.Current(); set != nil {
		added := sidecar.AddTo(known, set, e.core.Managed, func(node *corev1.Node) driverpods.Listed { return e.pods.ListCached(node.Name) })
		if e.drivers.Enabled() {
			added.Registered = func(_ context.Context, node *corev1.Node, driver string) (bool, error) {
				return e.drivers.Driver(nil, node, set.HasDriver).Registered(driver)
			}
		}
	}
	return known, nil
}
