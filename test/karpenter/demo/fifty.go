package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/karpenter/timeline"
	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
	"github.com/kwok-dra/kwok-dra/test/tools/demo/show"
)

// fifty is how many Pods the Deployment has.
const fifty = 50

func (s *story) runFifty(ctx context.Context) error {
	show.Chapter(os.Stdout, "Fifty Pods at once that claim one GPU each, and the latency that kwok-dra adds")
	created := time.Now()
	if err := show.Apply(ctx, s.cluster, manifests, "inference.yaml"); err != nil {
		return err
	}
	pods, err := s.fiftyPods(ctx)
	if err != nil {
		return err
	}
	var last time.Time
	for _, pod := range pods {
		running, err := s.awaitStep(ctx, timeline.PodRunning, pod)
		if err != nil {
			return err
		}
		if running.At.After(last) {
			last = running.At
		}
	}
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	fmt.Printf("%d Pods run on %d nodes, %.1f s after they were created. Of that time kwok-dra took:\n\n", fifty, len(nodes.Items), last.Sub(created).Seconds())
	added, err := s.timeline.AddedTo(driver, func(pod string) bool { return strings.HasPrefix(pod, "inference-") })
	if err != nil {
		return err
	}
	return printAdded(added)
}

// fiftyPods are the names of the Pods, once all are there.
func (s *story) fiftyPods(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		list, err := s.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=inference"})
		if err != nil {
			return nil, fmt.Errorf("list Pods: %w", err)
		}
		if len(list.Items) == fifty {
			var names []string
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			return names, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for Pods: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func printAdded(added []timeline.Added) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\tMEDIAN\t95TH PERCENTILE")
	for _, row := range []struct {
		what string
		took []time.Duration
	}{
		{"node Ready to complete pool", timeline.Publishing(added)},
		{"Pod bound to PodReadyToStartContainers", timeline.Preparing(added)},
		{"both", timeline.Both(added)},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.what, formatMilliseconds(pairs.Quantile(row.took, 0.5)), formatMilliseconds(pairs.Quantile(row.took, 0.95)))
	}
	return w.Flush()
}

func formatMilliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
