// Package show is what demos have in common: a cluster that stays to be looked at
// when all has gone well, and the way in which a story is told.
package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Command starts the demo; there are others.
const Command = "make demo"

// Lock keeps others from starting or removing a demo of this checkout.
func Lock(ctx context.Context, out io.Writer) (unlock func(), err error) {
	return cluster.Lock(ctx, Name(), func() {
		fmt.Fprintln(out, "Waiting for another process that starts or removes the demo ...")
	})
}

// A Play is a demo to be played.
type Play struct {
	// Name is that of its cluster.
	Name string
	// Command is what starts it.
	Command string
	// Acts are played one after the other.
	Acts []func(context.Context) error
	// Running is what the acts have left.
	Running func() *Running
}

// Run plays a demo, or tells about the one that runs. When an act fails or is
// interrupted, nothing is left. The caller has the lock.
func (p Play) Run(ctx context.Context, out io.Writer) (err error) {
	running, err := findRunning(ctx, p.Name, out)
	if err != nil {
		return fmt.Errorf("%w\nmake demo-new removes the demo that is there, and starts afresh", err)
	}
	if running != nil {
		fmt.Fprint(out, running.describeRunning(p.Command))
		return nil
	}
	defer func() {
		if err != nil {
			_, downErr := cluster.Down(context.WithoutCancel(ctx), p.Name)
			err = errors.Join(err, downErr)
		}
	}()
	for _, act := range p.Acts {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return p.Running().saveState()
}

// Chapter begins a part of the story.
func Chapter(out io.Writer, title string) {
	fmt.Fprintf(out, "\n==> %s\n\n", title)
}

// Compile runs a build, and shows progress.
func Compile(out io.Writer, what string, build func() error) error {
	step := progress.Start(out, "Compiling "+what)
	err := build()
	step.Finish(err)
	return err
}

// StartCluster starts a cluster that stays, with kwok's fast Stages, but for
// pod-ready the project's own, which holds back Pods until their claims are
// prepared.
func StartCluster(ctx context.Context) (*cluster.Cluster, error) {
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	stages := filepath.Join(kwok, "kustomize", "stage")
	c, _, err := cluster.Up(ctx, cluster.Options{Name: Name(), Output: os.Stdout, Config: []string{
		filepath.Join(stages, "node", "fast", "node-initialize.yaml"),
		filepath.Join(stages, "node", "heartbeat-with-lease", "node-heartbeat-with-lease.yaml"),
		filepath.Join(stages, "pod", "fast", "pod-complete.yaml"),
		filepath.Join(stages, "pod", "fast", "pod-delete.yaml"),
		filepath.Join(sidecar.Root(), "stages", "pod", "fast", "pod-ready.yaml"),
	}})
	return c, err
}

// Apply applies a file of manifests.
func Apply(ctx context.Context, c *cluster.Cluster, manifests fs.FS, file string) error {
	content, err := manifests.Open("manifests/" + file)
	if err != nil {
		return fmt.Errorf("apply %s: %w", file, err)
	}
	defer func() { _ = content.Close() }()
	_, err = c.KubectlInput(ctx, content, "apply", "-f", "-")
	return err
}
