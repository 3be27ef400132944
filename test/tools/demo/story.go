package main

import (
	"context"
	"fmt"
	"io"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/world"
)

// A story is what the demo shows, in acts. Each command that it shows is one that
// the reader can repeat.
type story struct {
	options world.Options
	out     io.Writer
	world   *world.World
}

func (s *story) actsInOrder() []func(context.Context) error {
	return []func(context.Context) error{s.compilePrograms, s.startCluster, s.addNodes, s.runPods, s.finishDemo}
}

// compilePrograms comes first, so that no cluster waits for it.
func (s *story) compilePrograms(context.Context) error {
	return show.Compile(s.out, "kwok-dra and kwok-dractl", func() error {
		_, err := sidecar.Programs()
		return err
	})
}

func (s *story) startCluster(ctx context.Context) (err error) {
	show.Chapter(s.out, "A real control plane with kwok and kwok-dra, on loopback")
	s.world, err = world.Start(ctx, s.options)
	return err
}

func (s *story) addNodes(ctx context.Context) error {
	show.Chapter(s.out, "Four fake nodes, and what devices they have")
	fmt.Fprint(s.out, "A node's DRA driver registers some seconds after its node is Ready; then kwok-dra publishes the devices.\n\n")
	if err := s.world.AwaitNodes(ctx); err != nil {
		return err
	}
	return s.showCommands(ctx, "kubectl get nodes -L node.kubernetes.io/instance-type", "kubectl get resourceslices")
}

func (s *story) runPods(ctx context.Context) error {
	show.Chapter(s.out, "A Deployment whose Pods claim one GPU with more than 40Gi each")
	if err := s.world.RunPods(ctx); err != nil {
		return err
	}
	lines := []string{"kubectl get pods,resourceclaims", "kwok-dractl status"}
	if s.world.ShowsContainers {
		lines = append(lines, "kubectl exec deployment/training -- nvidia-smi -L")
	}
	return s.showCommands(ctx, lines...)
}

func (s *story) finishDemo(ctx context.Context) error {
	device, err := s.world.ToBreak(ctx)
	if err != nil {
		return err
	}
	show.Chapter(s.out, "It is yours")
	fmt.Fprint(s.out, lastWords(s.world, s.runningDemo().Access(), device))
	return nil
}

func (s *story) runningDemo() *show.Running {
	return show.NewRunning(show.Command, s.world.Cluster, s.world.Path, s.world.Sidecar)
}

// showCommands runs commands before the eyes of the reader.
func (s *story) showCommands(ctx context.Context, lines ...string) error {
	for i, line := range lines {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		fmt.Fprintf(s.out, "$ %s\n", line)
		command := s.world.Shell(ctx, line)
		command.Stdout, command.Stderr = s.out, s.out
		if err := command.Run(); err != nil {
			return fmt.Errorf("run %s: %w", line, err)
		}
	}
	return nil
}
