package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// view is what a command shows of a cluster.
type view struct {
	// value is for programs, and tables for people.
	value  any
	tables output.Tables
	// next says which command says more.
	next string
	// nothing says why there is nothing to show.
	nothing string
	// unseen says what could not be read, if anything.
	unseen string
}

func (c *command) viewOverview(ctx context.Context, w *world) *view {
	shown := w.newOverview(ctx, &c.filter, c.attributes...)
	return &view{value: shown, tables: shown.listTables(c.output.Format), next: c.suggestNext(shown), nothing: c.describeNothing(w, shown), unseen: shown.Unseen}
}

// describeNothing says why an overview is empty.
func (c *command) describeNothing(w *world, shown *Overview) string {
	switch {
	case len(w.Slices)+len(shown.Gone) == 0:
		return "no driver has published a ResourceSlice"
	case len(shown.Totals) == 0:
		return "no pool matches " + c.filter.describeUnmatched(w)
	case len(c.filter.states) > 0 && len(shown.Pools)+len(shown.Gone) == 0:
		return "no device is " + strings.ReplaceAll(c.filter.states.String(), ",", " or ")
	case c.filter.problems && len(shown.Pools)+len(shown.Gone)+len(shown.Waiting) == 0:
		return "no problems"
	}
	return ""
}

// suggestNext names the command to run next: the one that says most of what is worst.
func (c *command) suggestNext(shown *Overview) string {
	if pods := len(shown.Waiting); pods > 0 {
		where := ""
		switch first := shown.Waiting[0].Namespace; {
		case first != shown.Waiting[pods-1].Namespace: // they are sorted
			where = " -A"
		case first != c.namespace:
			where = " -n " + first
		}
		if pods == 1 {
			return "1 Pod waits: " + c.name + " why" + where
		}
		return fmt.Sprintf("%d Pods wait: %s why%s", pods, c.name, where)
	}
	for i := range shown.Pools {
		if pool := &shown.Pools[i]; pool.Node != "" && (!pool.isHealthy() || len(shown.Gone) == 0) {
			return fmt.Sprintf("Devices of a node: %s status node %s", c.name, pool.Node)
		}
	}
	return ""
}

func (c *command) viewNode(w *world, name string) *view {
	all := w.listDevices(name)
	if len(all) == 0 {
		return &view{value: all, nothing: fmt.Sprintf("node %s has no devices of its own", name), unseen: w.Unseen}
	}
	devices := slices.DeleteFunc(slices.Clone(all), func(d clusterdevices.Device) bool { return !c.filter.states.hasState(d.State) })
	if len(devices) == 0 {
		return &view{value: devices, nothing: fmt.Sprintf("no device of node %s is %s", name, strings.ReplaceAll(c.filter.states.String(), ",", " or ")), unseen: w.Unseen}
	}
	return &view{value: devices, tables: output.Tables{deviceTable(devices, c.attributes)}, next: c.suggestNextOfNode(all), unseen: w.Unseen}
}

// suggestNextOfNode names the command for a Pod that waits for devices of a node, or for a claim that has some.
func (c *command) suggestNextOfNode(devices []clusterdevices.Device) string {
	next := ""
	for i := range devices {
		for _, claim := range devices[i].Claims {
			if claim.Failure != "" && len(claim.Pods) > 0 {
				return fmt.Sprintf("Pod %s waits: %s why %s -n %s", claim.Pods[0], c.name, claim.Pods[0], claim.Namespace)
			}
			next = cmp.Or(next, fmt.Sprintf("Steps of a claim: %s status claim %s -n %s", c.name, claim.Name, claim.Namespace))
		}
	}
	return next
}

func viewSteps(listed []history.Step) *view {
	return &view{value: listed, tables: output.Tables{steps.StepTable(listed)}}
}

// viewClaim returns what is known of a claim that may be gone by now.
func viewClaim(l *follow.Live, namespace, name string) *view {
	claim, found, err := l.Claims.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return &view{value: []history.Step{}, nothing: fmt.Sprintf("claim %s/%s is gone", namespace, name)}
	}
	s := &history.Story{Claim: claim.(*resourcev1.ResourceClaim), Pods: map[string]*corev1.Pod{}, Events: follow.Current[*corev1.Event](l.Events)}
	for _, consumer := range clusterdevices.ConsumingPods(s.Claim) {
		if pod, found, err := l.Pods.GetStore().GetByKey(namespace + "/" + consumer); err == nil && found {
			s.Pods[consumer] = pod.(*corev1.Pod)
		}
	}
	return viewSteps(s.ListSteps())
}

// showView shows a view once.
func (c *command) showView(v *view) error {
	if err := c.printView(c.streams.Out, v, screen.Width(c.streams.Out), 0); err != nil {
		return err
	}
	c.tellUser(v)
	return nil
}

// printView prints a view that has room for so many columns and lines.
func (c *command) printView(out io.Writer, v *view, width, height int) error {
	if c.output.Format.IsValue() {
		return output.Value(out, c.output.Format, v.value)
	}
	next := v.next
	if c.noHeaders || next == "" || len(v.tables) == 0 {
		next = ""
	} else {
		next = "\n" + next + "\n"
	}
	if height > 0 {
		height = max(1, height-strings.Count(next, "\n"))
	}
	colours := screen.Of(c.streams.Out) != nil && os.Getenv("NO_COLOR") == ""
	err := v.tables.Print(out, output.Layout{Format: c.output.Format, Width: width, Height: height, Colours: colours, NoHeaders: c.noHeaders})
	if err == nil && next != "" {
		_, err = io.WriteString(out, next)
	}
	return err
}

// tellUser tells the user why nothing is shown, and once what could not be read.
func (c *command) tellUser(v *view) {
	if v.unseen != "" && !c.toldUnseen {
		c.toldUnseen = true
		c.streams.Tell("%s\n", v.unseen)
	}
	if v.nothing != "" {
		c.streams.Tell("%s\n", v.nothing)
	}
}
