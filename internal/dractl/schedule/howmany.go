package schedule

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// more is how many Pods of a kind fit: a Pod of a file, or what makes Pods.
type more struct {
	Namespace string `json:"namespace"`
	// Pod is the name, or the kind and name of what makes the Pods.
	Pod string `json:"pod"`
	// Pods is how many are asked for, Fit how many fit in all, and More how many of those were not
	// asked for.
	Pods int      `json:"pods"`
	Fit  int      `json:"fit"`
	More int      `json:"more"`
	Then []string `json:"then"`
}

// countFitting prints how many Pods like each fit, beside all others that are placed. Pods of one maker are
// alike.
func (c *command) countFitting(ctx context.Context, scheduler *simulator.Scheduler, placements []*simulator.Placement, makerOf func(*corev1.Pod) string) error {
	counts := []*more{} // which is a list for programs, too, if it is empty
	var first []*simulator.Placement
	known := map[string]*more{}
	for _, p := range placements {
		maker := makerOf(p.Pod)
		m := known[namespacedName(p.Pod.Namespace, maker)]
		if m == nil {
			m = &more{Namespace: p.Pod.Namespace, Pod: maker}
			known[namespacedName(p.Pod.Namespace, maker)] = m
			counts, first = append(counts, m), append(first, p)
		}
		m.Pods++
		if p.Node != "" {
			m.Fit++
		}
	}
	progress := c.streams.Progress("counting how many Pods fit", len(counts))
	for i, m := range counts {
		m.More, m.Then = scheduler.More(ctx, first[i].Pod)
		m.Fit += m.More
		progress.Step()
	}
	progress.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.output.Format.IsValue() {
		return output.Value(c.streams.Out, c.output.Format, counts)
	}
	table := output.Rows{Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "pods"}, {Name: "fit"}}}
	reasons := map[*simulator.Placement][]string{}
	for i, m := range counts {
		text := strconv.Itoa(m.Fit)
		if m.More == simulator.Boundless {
			text = strconv.Itoa(m.More) + "+"
		}
		table.Add(m.Namespace, m.Pod, strconv.Itoa(m.Pods), text)
		reasons[first[i]] = m.Then
	}
	if err := table.Print(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	return printBlocks(c.streams.Out, "\nThen, for one more like Pod %s%s:\n  %s\n", groupBlocks(placements, reasons))
}
