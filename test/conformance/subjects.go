package main

import (
	"context"
	"regexp"
	"strings"
)

// subject is a scheduler or an autoscaler.
type subject struct {
	name string
	// kubernetes is the version of the cluster.
	kubernetes   string
	isAutoscaler bool
	// setting says how it runs, for readers.
	setting string
	// unsupported is what it says that it does not do.
	unsupported []unsupported
	// checkout is where it comes from, if it publishes no module.
	checkout *checkout
	// play plays stories, and returns the report of kwok-dractl and the version of the subject.
	play func(ctx context.Context, p *player, s *subject) (report []byte, version string, err error)
}

// unsupported are features that stories leave out, and where the project says that it does not have them.
type unsupported struct {
	features []string
	// reason is a sentence without its end, and link is its source.
	reason, link string
}

// checkout is a project whose source the user has cloned.
type checkout struct {
	// folder is its name among the checkouts, and suite is what starts it in test/others.
	folder, suite string
	// manifest is a file of manifests to apply before the stories. Optional.
	manifest    string
	url, commit string
}

// kaiQueue is what KAI wants on Pods and on claims of GPUs that Pods share.
const kaiQueue = "kai.scheduler/queue=conformance"

// subjects are all, in the order of the page.
var subjects = []subject{
	kubeScheduler("1.34"), kubeScheduler("1.35"), kubeScheduler("1.36"), kubeScheduler("1.37"),
	{
		name: "KAI Scheduler", kubernetes: "1.36",
		setting: "With a queue without limits, which Pods and claims name",
		checkout: &checkout{
			folder: "KAI-Scheduler", suite: "kai-allocate", manifest: "kai-queue.yaml", url: "https://github.com/kai-scheduler/KAI-Scheduler", commit: "d5bc503a1463",
		},
		unsupported: []unsupported{{
			features: []string{"admin-access", "binding-conditions", "consumable-capacity", "device-taints", "partitionable-devices", "pod-groups", "prioritized-list"},
			reason:   "at this commit it calls the allocator with no feature on (`structured.Features{}`), which was reported since",
			link:     "https://github.com/kai-scheduler/KAI-Scheduler/issues/2100",
		}},
		play: func(ctx context.Context, p *player, s *subject) ([]byte, string, error) {
			return p.checkInSuite(ctx, s, append(p.schedulerArguments(s), "--scheduler-name", "kai-scheduler", "--labels", kaiQueue))
		},
	},
	{
		name: "Volcano", kubernetes: "1.36",
		setting:  "With the plugins `priority`, `gang`, `conformance`, `predicates`, `capacity` and `nodeorder`, the feature gates that are on by default and `DRAConsumableCapacity`, which these stories do not use",
		checkout: &checkout{folder: "volcano", suite: "volcano", url: "https://github.com/volcano-sh/volcano", commit: "v1.15.1"},
		unsupported: []unsupported{{
			features: []string{"binding-conditions", "device-taints", "extended-resources", "partitionable-devices", "pod-groups"},
			reason:   "it has the feature gates of Kubernetes 1.35, where these are alpha and off",
			link:     "https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/plugins/predicates/predicates.go#L149",
		}, {
			features: []string{"consumable-capacity"},
			reason:   "it is alpha and off there too; with its feature gate, some claims end the scheduler (`addDRAResource` panics)",
			link:     "https://github.com/volcano-sh/volcano/issues/5586",
		}},
		play: func(ctx context.Context, p *player, s *subject) ([]byte, string, error) {
			return p.checkInSuite(ctx, s, append(p.schedulerArguments(s), "--scheduler-name", "volcano"))
		},
	},
	{
		name: "Karpenter", kubernetes: "1.36", isAutoscaler: true,
		setting: "With its KWOK provider, instance types whose devices come from ResourcePoolTemplates, and a NodePool that gives up nodes which are not needed",
		play:    checkKarpenter,
	},
	{
		name: "Cluster Autoscaler", kubernetes: "1.36", isAutoscaler: true,
		setting: "With its KWOK provider, one group of nodes of which one is always there, and short times: it looks each second, and removes a node that was not needed for two. A version that ends with `dirty` was built with other versions of Kubernetes' modules than its go.mod has",
		checkout: &checkout{
			folder: "cluster-autoscaler", suite: "cluster-autoscaler", url: "https://github.com/kubernetes-sigs/cluster-autoscaler", commit: "33c3f97bf274",
		},
		play: checkClusterAutoscaler,
	},
}

// kubeScheduler is that of a minor version of Kubernetes.
func kubeScheduler(minor string) subject {
	return subject{
		name: "kube-scheduler " + minor, kubernetes: minor,
		setting: "With the feature gates that are on by default, and a backoff of one second",
		play:    checkKubeScheduler,
	}
}

// simple matches what a name of a folder may have.
var simple = regexp.MustCompile(`[^a-z0-9.]+`)

// folderName is the name of the folder with the evidence.
func (s *subject) folderName() string {
	return simple.ReplaceAllString(strings.ToLower(s.name), "-")
}

// unsupportedFeatures returns all features that stories leave out.
func (s *subject) unsupportedFeatures() []string {
	var features []string
	for _, u := range s.unsupported {
		features = append(features, u.features...)
	}
	return features
}
