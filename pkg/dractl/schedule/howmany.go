package schedule

import (
	"context"
	"strconv"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/simulator"
)

// more is how many more Pods fit.
type more struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	More      int      `json:"more"`
	Then      []string `json:"then"`
}

// count prints how many more Pods like each fit, after all of them are placed.
func (c *command) count(ctx context.Context, scheduler *simulator.Scheduler, placements []*simulator.Placement) error {
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
		if m.More == simulator.Boundless {
			text += "+"
		}
		table.Add(m.Namespace, m.Pod, text)
	}
	if err := table.Print(c.streams.Out, c.output.Format); err != nil {
		return err
	}
	reasons := map[*simulator.Placement][]string{}
	for i, p := range placements {
		reasons[p] = counts[i].Then
	}
	return printBlocks(c.streams.Out, "\nThen, for one more like Pod %s%s:\n  %s\n", blocks(placements, reasons))
}
