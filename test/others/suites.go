package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/others/report"
)

// A suite is a suite of tests of another project, or stories with its programs, and what it
// needs. The folder manifests has a kustomization of nodes and templates for each.
type suite struct {
	name string
	// title names it in the table of docs/works-with.md, in Markdown.
	title string
	// tests are what is built and run, from the module as it was released. Where there are
	// stories, only the module counts. That of Kubernetes is of the cluster's version.
	tests build.Tests
	// origin says that no module of the suite is published, and what is used instead: the
	// checkout, when the user has named one. Both are empty for other suites.
	origin   *origin
	checkout build.Checkout
	// stories are specs of ours, for a project whose own tests need containers.
	stories []story
	// label is what Ginkgo chooses the specs of the suite by, where the program has others
	// too. Optional.
	label string
	// specs matches the names of those that are the suite, where the program has others too.
	// Optional.
	specs *regexp.Regexp
	// load builds a suite that is not of Ginkgo, and returns what runs it. It may be nil.
	load func(ctx context.Context, r *runner, s suite) (player, error)
	// complete is the Stage among the manifests by which Pods of Jobs end. By default they
	// do at once.
	complete string
	// general says that Pods go through the steps of a kubelet, with its delays, by our general Stages.
	general bool
	// moreStages are ours that the suite has besides, as files below stages.
	moreStages []string
	// parallel is how many specs of Ginkgo run at the same time, if more than one.
	parallel int
	// endless says that Pods of Jobs do not end.
	endless bool
	// cluster says what cluster the project itself tests on.
	cluster cluster.Options
	// containerView says that the suite reads logs of containers, which then show what the
	// containers see of their devices.
	containerView bool
	// pluginsDir says that the suite uses the folders of nodes, with the sockets that a kubelet would have.
	pluginsDir bool
	// sidecar are more arguments for kwok-dra.
	sidecar []string
	// commands are the programs that install starts. They are built before the cluster starts,
	// which would otherwise wait idle for the compiler.
	commands []command
	// build builds a program that install finds by itself, at the same time. It may be nil.
	build func() (string, error)
	// install starts what the suite is about, such as the controllers of a queue, when the
	// nodes are Ready. It may be nil.
	install func(ctx context.Context, w *world) (*installation, error)
	leftOut []leftOut
	// leftOutSince are left out too, from minor versions of Kubernetes on.
	leftOutSince map[int][]leftOut
}

// command is a program of another project.
type command struct {
	// module is the zero value for the checkout of the suite.
	module module.Version
	// path is its package, below the module.
	path string
}

// installation is what runs in a cluster for a suite.
type installation struct {
	// logs are files to keep, by the names under which they are kept.
	logs map[string]string
	// metrics is the URL of the metrics that users look at. Optional.
	metrics string
	// kubeconfig is the one of a suite with several clusters. By default it is the cluster's.
	kubeconfig string
	// stop ends what was started. It may be nil.
	stop func() error
}

// leftOut says why specs are not run.
type leftOut struct {
	specs   *regexp.Regexp
	because string
}

// suites are all, in the order in which they run.
var suites = []suite{
	draExampleDriver, kubernetes, kueueSuite("whole-device"), kueueSuite("counter"), kueueSuite("capacity"), multiKueue, karpenterDRA,
	kubeStateMetrics, nodeFeatureDiscovery, kubeVirt, computeDomains, jobSet, lws, trainer, clusterLoader, clusterLoaderExtended,
	kaiAllocate, kaiReclaim, kaiPreempt, volcano, clusterAutoscaler,
}

func switchOn(names ...string) map[string]bool {
	on := map[string]bool{}
	for _, name := range names {
		on[name] = true
	}
	return on
}

// foreign reports whether a spec was not run and is none of the suite.
func (s *suite) foreign(spec report.Spec) bool {
	return spec.Result == report.LeftOut && s.specs != nil && !s.specs.MatchString(spec.Name)
}

// without matches all that is left out of a suite.
func (s *suite) without() string {
	var all []string
	for _, left := range s.leftOut {
		all = append(all, left.specs.String())
	}
	return strings.Join(all, "|")
}

// explain says of specs that are left out why.
func (s *suite) explain(specs []report.Spec) {
	for i := range specs {
		for _, left := range s.leftOut {
			if specs[i].Result == report.LeftOut && left.specs.MatchString(specs[i].Name) {
				specs[i].Message = left.because
			}
		}
	}
}

func names() []string {
	var all []string
	for _, s := range suites {
		all = append(all, s.name)
	}
	return all
}

// choose finds a suite by its name, those of a project by how their names begin, or all
// where name is empty.
func choose(name string) ([]suite, error) {
	var chosen []suite
	for _, s := range suites {
		if name == "" || s.name == name || strings.HasPrefix(s.name, name+"-") {
			chosen = append(chosen, s)
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("find suite %q: want one of %s, or how some of them begin", name, strings.Join(names(), ", "))
	}
	return chosen, nil
}
