package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var kaiScheduler = origin{
	module: "github.com/kai-scheduler/KAI-scheduler",
	folder: ".",
	url:    "https://github.com/kai-scheduler/KAI-Scheduler",
	commit: "d5bc503a1463",
}

// The suites of KAI that have specs of DRA. Their other specs are of device plugins.
var (
	kaiAllocate = kaiSuite("kai-allocate", "allocate/resources", "with dynamic resource request|DRA-backed extended resource")
	kaiReclaim  = kaiSuite("kai-reclaim", "reclaim", "Reclaim DRA")
	kaiPreempt  = kaiSuite("kai-preempt", "preempt", "Priority Preemption Dynamic Resources|DRA claims")
)

func kaiSuite(name, folder, specs string) suite {
	return suite{
		name:     name,
		title:    "[KAI Scheduler](#kai-scheduler), its specs of DRA in `" + folder + "`, [from a checkout](#run-them)",
		origin:   &kaiScheduler,
		tests:    build.Tests{Package: kaiScheduler.module + "/test/e2e/suites/" + folder},
		specs:    regexp.MustCompile(specs),
		cluster:  cluster.Options{FeatureGates: switchOn("DRAExtendedResource")},
		endless:  true,
		commands: kaiCommands(),
		install:  installKAI,
		leftOut: []leftOut{{
			regexp.MustCompile("preempts an extended-resource pod"),
			"KAI's own fault: deallocateHandlerFn (pkg/scheduler/plugins/dynamicresources/dynamicresources.go) releases the claims in the spec of a victim, and not the one that was made for its extended resources",
		}},
	}
}

// kaiNamespace is where KAI's own objects are.
const kaiNamespace = "kai-scheduler"

// kaiProgram is a command of KAI, which runs as a process with the rights of its
// ServiceAccount.
type kaiProgram struct {
	command, account string
	arguments        []string
}

// kaiPrograms are those without which no Pod is scheduled. They serve no webhooks, which only
// check what users write.
var kaiPrograms = []kaiProgram{
	{"podgrouper", "pod-grouper", []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}},
	// It has no argument for the address of its metrics, port 8080.
	{"podgroupcontroller", "podgroup-controller", []string{"--health-probe-bind-address=0", "--enable-podgroup-webhook=false"}},
	{"queuecontroller", "queue-controller", []string{"--metrics-listen-address=0", "--enable-webhook=false"}},
	{"binder", "binder", []string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}},
	{"scheduler", "scheduler", []string{"--listen-address=127.0.0.1:0", "--plugin-server-port=0", "--v=3"}},
}

// commandOf is one of the commands that a checkout has in its folder cmd.
func commandOf(name string) command { return command{path: "/cmd/" + name} }

func kaiCommands() []command {
	var all []command
	for _, p := range kaiPrograms {
		all = append(all, commandOf(p.command))
	}
	return all
}

// installKAI starts KAI's programs.
func installKAI(ctx context.Context, w *world) (*installation, error) {
	step := progress.Start(os.Stderr, "Starting KAI "+w.suite.checkout.Module.Version)
	logs, err := w.startKAI(ctx)
	step.Finish(err)
	return &installation{logs: logs}, err
}

func (w *world) startKAI(ctx context.Context) (logs map[string]string, err error) {
	if err := w.applyKAI(ctx); err != nil {
		return nil, err
	}
	logs = map[string]string{}
	for _, p := range kaiPrograms {
		kubeconfig, err := sidecar.Kubeconfig(ctx, w.Cluster, kaiNamespace, p.account)
		if err != nil {
			return nil, err
		}
		// Not all of them have an argument for it.
		variables := map[string]string{"KUBECONFIG": kubeconfig}
		if err := w.AddComponentWithEnv(variables, "kai-"+p.command, w.programs[commandOf(p.command)], p.arguments...); err != nil {
			return nil, err
		}
		logs[p.command+".log"] = filepath.Join(w.Logs(), "kai-"+p.command+".log")
	}
	_, err = w.Kubectl(ctx, "-n", kaiNamespace, "wait", "--for=condition=Available", "--timeout=1m", "deployments", "--all")
	return logs, err
}

// applyKAI applies what KAI's chart has for these programs: definitions, roles, and the queues
// with which it begins.
func (w *world) applyKAI(ctx context.Context) error {
	chart := filepath.Join(w.suite.checkout.Dir, "deployments", "kai-scheduler")
	if _, err := w.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(chart, "crds")); err != nil {
		return err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return err
	}
	for _, p := range kaiPrograms {
		if _, err := w.Kubectl(ctx, "apply", "-f", filepath.Join(chart, "templates", "rbac", p.command+".yaml")); err != nil {
			return fmt.Errorf("apply the role of %s: %w", p.command, err)
		}
	}
	_, err := w.Kubectl(ctx, "apply", "-f", filepath.Join(w.suite.checkout.Dir, "docs", "quickstart", "default-queues.yaml"))
	return err
}
