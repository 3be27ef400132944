package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/conformance/autoscaled"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
)

const (
	// kubernetes is the version of all clusters, and the one that the patches of kube-scheduler are for.
	kubernetes = "v1.36.3"
	scheduler  = "kube-scheduler"
	// readyAfter is longer than the 10 seconds after which Karpenter looks again at Pods that wait.
	readyAfter = 12 * time.Second
)

// trial is how stories are played with a program.
type trial struct {
	// batch is how many stories are played before it is looked whether one has found the fault.
	batch int
	// build builds the program with a patch, or as it was released if the patch is "".
	build func(ctx context.Context, c *checker, patch string) (string, error)
	// play plays stories with the program of a mutant, and returns what they violate.
	play func(ctx context.Context, c *checker, m *mutant, program string, stories []string) ([]finding, error)
}

// trials are those of the programs, by the names of the folders of patches.
var trials = map[string]trial{
	scheduler:           {batch: 10, build: buildScheduler, play: playScheduler},
	karpenter.Component: {batch: 1, build: buildKarpenter, play: playKarpenter},
}

// restarting runs a program again and again. Its arguments are the pause and the command.
const restarting = `pause=$1; shift
trap 'kill $child; wait $child; exit' TERM INT
while :; do "$@" & child=$!; sleep "$pause" & wait $!; kill $child; wait $child; done`

func buildScheduler(ctx context.Context, c *checker, patch string) (string, error) {
	if patch == "" {
		return filepath.Join(c.programs, scheduler), nil
	}
	return build.EnsurePatched(ctx, build.Patched{Kubernetes: kubernetes, Program: scheduler, Patch: patch}, os.Stdout)
}

// playScheduler has check-scheduler start the cluster.
func playScheduler(ctx context.Context, c *checker, m *mutant, program string, stories []string) ([]finding, error) {
	arguments := append([]string{"check-scheduler", "--control-plane", c.programs}, stories...)
	arguments = append(arguments, "--")
	if m.restarts {
		arguments = append(arguments, "sh", "-c", restarting, "restarting", "3")
	}
	arguments = append(arguments,
		program, "--kubeconfig={kubeconfig}", "--authentication-kubeconfig={kubeconfig}", "--authorization-kubeconfig={kubeconfig}",
		"--leader-elect=false", "--secure-port=0",
	)
	return c.findViolations(ctx, m, arguments)
}

func buildKarpenter(ctx context.Context, _ *checker, patch string) (string, error) {
	if patch == "" {
		return karpenter.Binary()
	}
	return karpenter.BuildPatched(ctx, patch, os.Stdout)
}

// playKarpenter starts a cluster for check-autoscaler: nodes that a fault leaves behind are of no concern to other stories.
func playKarpenter(ctx context.Context, c *checker, m *mutant, program string, stories []string) (findings []finding, err error) {
	cluster, err := autoscaled.StartKarpenter(ctx, autoscaled.Options{Program: program, Kubernetes: kubernetes, ReadyAfter: readyAfter})
	if err != nil {
		return nil, fmt.Errorf("start a cluster with Karpenter: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	arguments := append([]string{"check-autoscaler", "--kubeconfig", cluster.Kubeconfig(), "--quiet", "20s", "--settle", "90s", "--timeout", "4m"}, stories...)
	return c.findViolations(ctx, m, append(arguments, autoscaled.GroupArguments()...))
}
