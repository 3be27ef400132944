package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// volcano are stories with Volcano's scheduler and controllers. Its own tests run containers.
// What is published of it lacks a folder that its go.mod names, so it is a checkout.
var volcano = suite{
	name:  "volcano",
	title: `[Volcano](#volcano), stories of ours, [from a checkout](#run-them)`,
	origin: &origin{
		module: "volcano.sh/volcano",
		folder: ".",
		url:    "https://github.com/volcano-sh/volcano",
		commit: "v1.15.1",
	},
	cluster:  cluster.Options{FeatureGates: switchOn("DRAConsumableCapacity")},
	endless:  true,
	commands: []command{commandOf("controller-manager"), commandOf("scheduler")},
	install:  installVolcano,
	stories: []story{
		{name: "a Job whose Pods claim whole GPUs runs", run: wholeGPUs},
		{name: "Pods share GPUs by their memory, until it is used up", run: sharedGPUs},
		{name: "a queue with a quota of GPUs holds a Job back", run: quotaOfGPUs},
		{name: "a gang gets all of its claims, or none", run: gangOfClaims},
	},
}

// volcanoNamespace is where Volcano's own objects are.
const volcanoNamespace = "volcano-system"

// volcanoKinds are those of its manifest that programs need which run as processes, without
// webhooks.
var volcanoKinds = regexp.MustCompile(`(?m)^kind: (Namespace|ServiceAccount|ClusterRole|ClusterRoleBinding|CustomResourceDefinition)$`)

func installVolcano(ctx context.Context, w *world) (*installation, error) {
	installed := &installation{logs: map[string]string{}}
	step := progress.Start(os.Stderr, "Starting Volcano "+w.suite.checkout.Module.Version)
	err := w.startVolcano(ctx, installed)
	step.Finish(err)
	return installed, err
}

func (w *world) startVolcano(ctx context.Context, installed *installation) error {
	content, err := os.ReadFile(filepath.Join(w.suite.checkout.Dir, "installer", "volcano-development.yaml"))
	if err != nil {
		return fmt.Errorf("read manifest of Volcano: %w", err)
	}
	documents := slices.DeleteFunc(strings.Split(string(content), "\n---\n"), func(document string) bool { return !volcanoKinds.MatchString(document) })
	if _, err := w.KubectlInput(ctx, strings.NewReader(strings.Join(documents, "\n---\n")), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return err
	}
	configuration := filepath.Join(manifests("volcano"), "scheduler.yaml")
	for _, p := range []struct {
		command, account string
		arguments        []string
	}{
		{"scheduler", "volcano-scheduler", []string{"--scheduler-conf=" + configuration, "--cache-dumper=false", "--feature-gates=DRAConsumableCapacity=true"}},
		{"controller-manager", "volcano-controllers", nil},
	} {
		kubeconfig, err := sidecar.Kubeconfig(ctx, w.Cluster, volcanoNamespace, p.account)
		if err != nil {
			return err
		}
		// It has a socket for its own debugging.
		variables := map[string]string{"DEBUG_SOCKET_DIR": filepath.Join(w.Logs(), "sockets")}
		arguments := append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "-v=3"}, p.arguments...)
		if err := w.AddComponentWithEnv(variables, p.account, w.programs[commandOf(p.command)], arguments...); err != nil {
			return err
		}
		installed.logs[p.command+".log"] = filepath.Join(w.Logs(), p.account+".log")
	}
	// The scheduler makes it.
	return until(ctx, serveLimit, func(ctx context.Context) error {
		_, err := w.Kubectl(ctx, "get", "queues.scheduling.volcano.sh", "default")
		return err
	})
}

func wholeGPUs(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("volcano"), "whole.yaml"), func() error {
		return w.jobRuns(ctx, "whole", 4, 8)
	})
}

// sharedGPUs has four Pods with half of a card each, of two cards, and a fifth that waits.
func sharedGPUs(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("volcano"), "shares.yaml"), func() error {
		if err := w.jobPhase(ctx, "shares", "Running"); err != nil {
			return err
		}
		return until(ctx, seen, w.cardsShared)
	})
}

func (w *world) cardsShared(ctx context.Context) error {
	claims, err := w.objects(ctx, "resourceclaims")
	if err != nil {
		return err
	}
	var ready, waiting int
	for _, claim := range claims {
		switch {
		case claim.Status.Allocation == nil:
			waiting++
		case claim.ready(claim.Status.Allocation.Devices.Results[0]):
			ready++
		}
	}
	if ready != 4 || waiting != 1 {
		return fmt.Errorf("count the claims with shares: want 4 prepared and 1 waiting, got %d and %d", ready, waiting)
	}
	return nil
}

// quotaOfGPUs has two Jobs in a queue that may have the GPUs of one of them.
func quotaOfGPUs(ctx context.Context, w *world) error {
	return w.oneAfterTheOther(ctx, "quota.yaml", 4)
}

// gangOfClaims has a Job that leaves some GPUs, but not as many as the next one needs.
func gangOfClaims(ctx context.Context, w *world) error {
	return w.oneAfterTheOther(ctx, "gang.yaml", 6)
}

// oneAfterTheOther has the Job second wait, without a device, until the Job first is gone.
// Each has Pods with one GPU each: the first as many as are given, the second four.
func (w *world) oneAfterTheOther(ctx context.Context, file string, pods int) error {
	return w.perform(ctx, filepath.Join(manifests("volcano"), file), func() error {
		if err := w.jobRuns(ctx, "first", pods, pods); err != nil {
			return err
		}
		if err := w.jobPhase(ctx, "second", "Pending"); err != nil {
			return err
		}
		const waits = `--for=jsonpath={.status.conditions[?(@.type=="Unschedulable")].status}=True`
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", waits, "--timeout=1m", "podgroups.scheduling.volcano.sh", "-l", "story=second"); err != nil {
			return err
		}
		if err := w.jobRuns(ctx, "first", pods, pods); err != nil {
			return fmt.Errorf("look again: %w", err)
		}
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "delete", "jobs.batch.volcano.sh", "first"); err != nil {
			return err
		}
		return w.jobRuns(ctx, "second", 4, 4)
	})
}

// jobPhase waits until a Job is in a phase.
func (w *world) jobPhase(ctx context.Context, name, phase string) error {
	_, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=jsonpath={.status.state.phase}="+phase, "--timeout=1m", "jobs.batch.volcano.sh/"+name)
	return err
}

// jobRuns returns when a Job runs with so many Pods, and no claims have devices but theirs.
func (w *world) jobRuns(ctx context.Context, name string, pods, devices int) error {
	if err := w.jobPhase(ctx, name, "Running"); err != nil {
		return err
	}
	running := fmt.Sprintf("--for=jsonpath={.status.running}=%d", pods)
	if _, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", running, "--timeout=1m", "jobs.batch.volcano.sh/"+name); err != nil {
		return err
	}
	return until(ctx, seen, func(ctx context.Context) error {
		claims, err := w.objects(ctx, "resourceclaims")
		if err != nil {
			return err
		}
		return prepared(slices.DeleteFunc(claims, func(claim object) bool { return claim.Status.Allocation == nil }), devices)
	})
}
