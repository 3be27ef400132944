package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

// clusterAutoscaler are stories with Cluster Autoscaler and its KWOK provider, which makes
// the nodes.
var clusterAutoscaler = suite{
	name:  "cluster-autoscaler",
	title: `[Cluster Autoscaler](#cluster-autoscaler), stories of ours, [from a checkout](#run-them)`,
	origin: &origin{
		module: "sigs.k8s.io/cluster-autoscaler",
		folder: ".",
		url:    "https://github.com/kubernetes-sigs/cluster-autoscaler",
		commit: "33c3f97bf274",
	},
	endless:  true,
	commands: []command{autoscalerCommand},
	install:  installClusterAutoscaler,
	stories: []story{
		{name: "Pods get a second node for their claims, and it goes when they do", run: secondNode},
		{name: "no node is made for a claim that is too large for any", run: noNode},
	},
}

// autoscalerCommand is Cluster Autoscaler with its KWOK provider.
var autoscalerCommand = command{path: "/kwok"}

func installClusterAutoscaler(ctx context.Context, w *world) (*installation, error) {
	step := progress.Start(os.Stderr, "Starting Cluster Autoscaler "+w.suite.checkout.Module.Version)
	err := nodeGroup{w}.start(ctx, w.programs[autoscalerCommand])
	step.Finish(err)
	return &installation{logs: map[string]string{"controller.log": filepath.Join(w.Logs(), "cluster-autoscaler.log")}}, err
}

// nodeGroup is the group of nodes in a cluster that Cluster Autoscaler makes larger and smaller.
type nodeGroup struct{ *world }

// start returns when Cluster Autoscaler has made the first node.
func (g nodeGroup) start(ctx context.Context, program string) error {
	variables := map[string]string{"KWOK_PROVIDER_MODE": "local", "KUBECONFIG": g.Kubeconfig(), "POD_NAMESPACE": "kube-system"}
	err := g.AddComponentWithEnv(variables, "cluster-autoscaler", program,
		"--kubeconfig="+g.Kubeconfig(), "--leader-elect=false", "--address=127.0.0.1:0", "-v=4",
		// The first node of a group has to be there before a Pod claims its devices.
		"--enforce-node-group-min-size",
		"--scan-interval=1s", "--scale-down-unneeded-time=2s", "--scale-down-delay-after-add=2s")
	if err != nil {
		return err
	}
	return g.awaitFirst(ctx)
}

// awaitFirst returns when the group has no more nodes than it has to have.
func (g nodeGroup) awaitFirst(ctx context.Context) error {
	return until(ctx, serveLimit, func(ctx context.Context) error { return g.count(ctx, "nodes", 1) })
}

// secondNode takes a minute: so old a node has to be before Cluster Autoscaler believes that
// others of its group will have the same devices.
func secondNode(ctx context.Context, w *world) error {
	group := nodeGroup{w}
	return w.perform(ctx, filepath.Join(manifests("cluster-autoscaler"), "serving.yaml"), func() error {
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "status", "--timeout=100s", "deployment/serving"); err != nil {
			return err
		}
		claims, err := w.objects(ctx, "resourceclaims")
		if err != nil {
			return err
		}
		if err := prepared(claims, 6); err != nil {
			return err
		}
		if err := group.published(ctx, 2); err != nil {
			return err
		}
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "scale", "--replicas=0", "deployment/serving"); err != nil {
			return err
		}
		return until(ctx, serveLimit, func(ctx context.Context) error { return group.published(ctx, 1) })
	})
}

func noNode(ctx context.Context, w *world) error {
	group := nodeGroup{w}
	if err := group.awaitFirst(ctx); err != nil {
		return err
	}
	return w.perform(ctx, filepath.Join(manifests("cluster-autoscaler"), "too-large.yaml"), func() error {
		err := until(ctx, serveLimit, func(ctx context.Context) error {
			said, err := w.Kubectl(ctx, "-n", storyNamespace, "get", "events", "--field-selector=involvedObject.name=too-large,reason=NotTriggerScaleUp", "-o", "name")
			if err == nil && said == "" {
				err = fmt.Errorf("look for an event NotTriggerScaleUp of Pod too-large: there is none")
			}
			return err
		})
		if err != nil {
			return err
		}
		return group.count(ctx, "nodes", 1)
	})
}

// published reports what is wrong where there have to be so many nodes with a slice each.
func (g nodeGroup) published(ctx context.Context, nodes int) error {
	if err := g.count(ctx, "nodes", nodes); err != nil {
		return err
	}
	return g.count(ctx, "resourceslices", nodes)
}

func (g nodeGroup) count(ctx context.Context, resource string, want int) error {
	all, err := g.objects(ctx, resource)
	if err == nil && len(all) != want {
		err = fmt.Errorf("count %s: want %d, got %d", resource, want, len(all))
	}
	return err
}
