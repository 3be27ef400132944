package schedule

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

// boundless is how many Pods are enough to say that nothing but CPU and memory
// limits them.
const boundless = 20000

// More counts how many more Pods like one fit, and says why not one more.
func (s *Scheduler) More(ctx context.Context, pod *corev1.Pod) (int, []string) {
	trial := s.Clone()
	for count := range boundless {
		another := pod.DeepCopy()
		another.Name, another.UID, another.Status = pod.Name+"-more-"+strconv.Itoa(count), "", corev1.PodStatus{}
		placement := trial.Schedule(ctx, another)
		if placement.Node == "" {
			then := reasonsOf(ctx, trial, placement)
			for i := range then {
				then[i] = strings.ReplaceAll(then[i], another.Name, pod.Name)
			}
			return count, then
		}
	}
	return boundless, []string{"no device limits them"}
}

// more is how many more Pods fit.
type more struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	More      int      `json:"more"`
	Then      []string `json:"then"`
}

// count prints how many more Pods like each fit, after all of them are placed.
func (c *command) count(ctx context.Context, scheduler *Scheduler, placements []*Placement) error {
	var counts []more
	progress := c.streams.Progress("counting how many more Pods fit", len(placements))
	for _, p := range placements {
		count, then := scheduler.More(ctx, p.Pod)
		counts = append(counts, more{p.Pod.Namespace, p.Pod.Name, count, then})
		progress.Step()
	}
	progress.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.output.Format == output.JSON || c.output.Format == output.YAML {
		return output.Value(c.streams.Out, c.output.Format, counts)
	}
	table := output.Rows{Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "more"}}}
	for _, m := range counts {
		text := strconv.Itoa(m.More)
		if m.More == boundless {
			text += "+"
		}
		table.Add(m.Namespace, m.Pod, text)
	}
	if err := table.Print(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	reasons := map[*Placement][]string{}
	for i, p := range placements {
		reasons[p] = counts[i].Then
	}
	return printBlocks(c.streams.Out, "\nThen, for one more like Pod %s%s:\n  %s\n", blocks(placements, reasons))
}
