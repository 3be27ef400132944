package status

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/screen"
)

// view is what a command shows of a cluster.
type view struct {
	// value is for programs, and tables for people.
	value  any
	tables output.Tables
	// nothing says why there is nothing to show.
	nothing string
	// unseen says what could not be read, if anything.
	unseen string
}

func (c *command) overviewOf(ctx context.Context, w *world) *view {
	shown := w.overview(ctx, &c.filter)
	return &view{value: shown, tables: shown.tables(), nothing: c.nothing(w, shown), unseen: shown.Unseen}
}

// nothing says why an overview shows nothing.
func (c *command) nothing(w *world, shown *Overview) string {
	switch {
	case len(w.slices)+len(shown.Gone) == 0:
		return "no driver has published a ResourceSlice"
	case len(shown.Totals) == 0:
		return "no pool matches " + c.filter.unmatched(w)
	case c.filter.problems && len(shown.Pools)+len(shown.Gone)+len(shown.Waiting) == 0:
		return "no problems"
	}
	return ""
}

func nodeOf(w *world, name string) *view {
	devices := w.devices(name)
	if len(devices) == 0 {
		return &view{value: devices, nothing: fmt.Sprintf("node %s has no devices of its own", name), unseen: w.unseen}
	}
	return &view{value: devices, tables: output.Tables{deviceTable(devices)}, unseen: w.unseen}
}

func pathOf(steps []Step) *view {
	return &view{value: steps, tables: output.Tables{stepTable(steps)}}
}

// claimOf is what is known of a claim that may be gone by now.
func claimOf(l *live, namespace, name string) *view {
	if s := l.story(namespace, name); s != nil {
		return pathOf(s.path())
	}
	return &view{value: []Step{}, nothing: fmt.Sprintf("claim %s/%s is gone", namespace, name)}
}

// show shows a view once.
func (c *command) show(v *view) error {
	if err := c.print(c.streams.Out, v); err != nil {
		return err
	}
	c.tell(v)
	return nil
}

func (c *command) print(out io.Writer, v *view) error {
	if c.asValue() {
		return output.Value(out, c.output.Format, v.value)
	}
	return v.tables.Print(out, c.output.Format, screen.Of(c.streams.Out) != nil && os.Getenv("NO_COLOR") == "")
}

// tell tells the user why nothing is shown, and once what could not be read.
func (c *command) tell(v *view) {
	if v.unseen != "" && !c.toldUnseen {
		c.toldUnseen = true
		c.streams.Tell("%s\n", v.unseen)
	}
	if v.nothing != "" {
		c.streams.Tell("%s\n", v.nothing)
	}
}

func (c *command) asValue() bool {
	return c.output.Format == output.JSON || c.output.Format == output.YAML
}
