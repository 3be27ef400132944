package steps

import (
	"cmp"
	"time"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// StepTable shows steps, with the time since the first in whole seconds: most times in the API have no
// fraction, so the fraction of a difference would be wrong.
func StepTable(steps []history.Step) *output.Rows {
	columns := []output.Column{{Name: "time"}, {Name: "after"}, {Name: "object"}, {Name: "step"}, {Name: "detail"}}
	table := &output.Rows{Columns: columns, Tail: true}
	var first time.Time
	for i := range steps {
		step := &steps[i]
		at, after := "<unknown>", "<unknown>"
		if step.Time != nil {
			if first.IsZero() {
				first = step.Time.Truncate(time.Second)
			}
			at, after = step.Time.Format(time.RFC3339), step.Time.Truncate(time.Second).Sub(first).String()
			if step.Time.Nanosecond() != 0 {
				at = step.Time.Format("2006-01-02T15:04:05.000Z07:00") // as much of the second as is known
			}
		}
		table.Add(at, after, cmp.Or(step.Object, "claim"), step.What, output.OrNone(step.Detail))
	}
	return table
}
