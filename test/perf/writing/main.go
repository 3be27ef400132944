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
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func main() {
	nodes := flag.Int("nodes", 1000, "nodes that each writer creates in a round")
	rounds := flag.Int("rounds", 3, "rounds, of which the fastest counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx, *nodes, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "writing:", err)
		os.Exit(1)
	}
}

// compare has both writers take turns on an API server on which nothing else acts.
func compare(ctx context.Context, nodes, rounds int) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Disable: []string{cluster.Scheduler, cluster.ControllerManager, cluster.Kwok}, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(sidecar.Root(), "kustomize/crd")); err != nil {
		return err
	}
	client, err := admin.NewClient(c.Kubeconfig())
	if err != nil {
		return err
	}
	programs, err := sidecar.Programs()
	if err != nil {
		return err
	}
	scale := func(count int) error {
		command := exec.CommandContext(ctx, filepath.Join(programs, "kwok-dractl"), "--kubeconfig", c.Kubeconfig(), "scale", "nvidia-h100", "--timeout", "0", "--nodes", fmt.Sprint(count))
		command.Stderr = os.Stderr
		return command.Run()
	}
	raw := func() error {
		return fleet.InParallel(nodes, func(i int) error {
			_, err := client.CoreV1().Nodes().Create(ctx, fleet.NewNode(fmt.Sprint("raw-", i)), metav1.CreateOptions{})
			return err
		})
	}
	var rawTimes, scaleTimes []time.Duration
	for range rounds {
		ofRaw, rawErr := measure(raw)
		ofScale, scaleErr := measure(func() error { return scale(nodes) })
		if err := errors.Join(rawErr, scaleErr, scale(0), client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})); err != nil {
			return err
		}
		rawTimes, scaleTimes = append(rawTimes, ofRaw), append(scaleTimes, ofScale)
	}
	ofRaw, ofScale := slices.Min(rawTimes).Seconds(), slices.Min(scaleTimes).Seconds()
	fmt.Printf("%d nodes: a raw writer %.2f s, kwok-dractl scale %.2f s, ratio %.2f\n", nodes, ofRaw, ofScale, ofScale/ofRaw)
	return nil
}

func measure(write func() error) (time.Duration, error) {
	start := time.Now()
	err := write()
	return time.Since(start), err
}
