// Command writing compares kwok-dractl scale with a writer that does nothing but create the
// same number of nodes in parallel, and prints the ratio of their times.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// profile is what the nodes have.
const profile = "nvidia-h100"

func main() {
	nodes := flag.Int("nodes", 1000, "nodes that each writer creates in a round")
	rounds := flag.Int("rounds", 3, "rounds, of which the fastest counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compareWriters(ctx, *nodes, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "writing:", err)
		os.Exit(1)
	}
}

// compareWriters has both writers take turns on an API server on which nothing else acts.
func compareWriters(ctx context.Context, nodes, rounds int) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Disable: []string{cluster.Scheduler, cluster.ControllerManager, cluster.Kwok}, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(sidecar.Root(), "kustomize/crd")); err != nil {
		return err
	}
	raw, scale, err := newWriters(ctx, c, nodes)
	if err != nil {
		return err
	}
	if _, err := scale(1); err != nil { // makes the template and the classes
		return err
	}
	var ofRaw, ofScale usage
	for round := range rounds {
		var rawNow, scaleNow usage
		writeRaw := func() (err error) {
			rawNow, err = raw()
			_, removeErr := c.Kubectl(ctx, "delete", "--raw", "/api/v1/nodes")
			return errors.Join(err, removeErr)
		}
		writeScaled := func() (err error) {
			scaleNow, err = scale(nodes)
			_, removeErr := scale(0)
			return errors.Join(err, removeErr)
		}
		first, second := writeRaw, writeScaled
		if round%2 == 1 { // what the first one leaves to the API server slows the second one down
			first, second = second, first
		}
		if err := errors.Join(first(), second()); err != nil {
			return err
		}
		fmt.Printf("%d nodes: a raw writer %s, kwok-dractl scale %s, ratio %.2f\n", nodes, rawNow, scaleNow, scaleNow.took.Seconds()/rawNow.took.Seconds())
		ofRaw, ofScale = fasterOf(ofRaw, rawNow), fasterOf(ofScale, scaleNow)
	}
	fmt.Printf("fastest of %d rounds: a raw writer %s, kwok-dractl scale %s, ratio %.2f\n", rounds, ofRaw, ofScale, ofScale.took.Seconds()/ofRaw.took.Seconds())
	return nil
}

// newWriters returns a writer that does nothing else, and kwok-dractl.
func newWriters(ctx context.Context, c *cluster.Cluster, nodes int) (raw func() (usage, error), scale func(count int) (usage, error), err error) {
	client, err := admin.NewClient(c.Kubeconfig())
	if err != nil {
		return nil, nil, err
	}
	programs, err := sidecar.Programs()
	if err != nil {
		return nil, nil, err
	}
	of, err := target.Read(cli.Streams{}, []string{profile}, &target.Known{})
	if err != nil {
		return nil, nil, err
	}
	made := of.Nodes("raw", 0, nodes) // the same nodes, of another fleet
	for _, node := range made {
		node.Labels[v1alpha1.ScaleLabel] = "raw"
	}
	raw = func() (usage, error) {
		return measureUsage(func() error {
			return fleet.InParallel(nodes, func(i int) error {
				_, err := client.CoreV1().Nodes().Create(ctx, made[i], metav1.CreateOptions{})
				return err
			})
		})
	}
	scale = func(count int) (usage, error) {
		command := exec.CommandContext(ctx, filepath.Join(programs, "kwok-dractl"), "--kubeconfig", c.Kubeconfig(), "scale", profile, "--timeout", "0", "--nodes", fmt.Sprint(count))
		command.Stderr = os.Stderr
		used, err := measureUsage(command.Run)
		if err != nil {
			return usage{}, err
		}
		used.cpu = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		return used, nil
	}
	return raw, scale, nil
}

// usage is what writing has taken.
type usage struct{ took, cpu time.Duration }

func (u usage) String() string {
	return fmt.Sprintf("%.2f s (%.2f s of CPU)", u.took.Seconds(), u.cpu.Seconds())
}

func fasterOf(a, b usage) usage {
	if a.took == 0 || b.took < a.took {
		return b
	}
	return a
}

// measureUsage measures the time, and the CPU time of this process.
func measureUsage(write func() error) (usage, error) {
	before, err := sidecar.CPUTimeOf(os.Getpid())
	if err != nil {
		return usage{}, err
	}
	start := time.Now()
	if err := write(); err != nil {
		return usage{}, err
	}
	took := time.Since(start)
	after, err := sidecar.CPUTimeOf(os.Getpid())
	return usage{took, after - before}, err
}
