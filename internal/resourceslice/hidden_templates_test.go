package resourceslice

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
)

// TestHidden: a template of a lower priority on the same nodes is told of once, to
// the object that has it, and in outcomes and previews.
func TestHidden(t *testing.T) {
	t.Parallel()
	store := storeOf(t, template("low", "d", "{name: w}")+"  priority: -1\n"+template("high", "d", "{name: x}")+template("of-other", "e", "{name: w}"))
	set := store.Current()
	nodes := []*corev1.Node{fakeNode("n", true), fakeNode("m", true)}
	want := plan.DesiredPools(t.Context(), &plan.View{Set: set, Node: nodes[0]})
	require.Len(t, want.Templates, 2)
	outcomes := (&results{}).templateOutcomes(&want)
	require.Equal(t, Outcome{HiddenBy: "high"}, outcomes["low"])
	require.Len(t, outcomes, 3)

	release, err := preview.EverythingOn("1.36")
	require.NoError(t, err)
	previewed, err := preview.New(t.Context(), release, preview.Cluster{Config: set, Nodes: nodes})
	require.NoError(t, err)
	require.Len(t, previewed.Hidden, 1)
	require.Equal(t, "template low is hidden by template high of the same driver, d, whose priority is 0 and not -1, on 2 nodes", previewed.Hidden[0].String())
	require.Empty(t, previewed.Problems)
}

// TestHiddenIsTold once for each two templates, however many nodes there are.
func TestHiddenIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		documents := template("low", "d", "{name: w}") + "  priority: -1\n" + template("high", "d", "{name: x}")
		w := newWorld(t, documents, fakeNode("n", true), fakeNode("m", true))
		w.wrote("create 2")
		require.Empty(t, w.events(), "a file has no object to tell")
		carrier := &corev1.ObjectReference{Kind: "ConfigMap", Namespace: "a", Name: "b"}
		hidden := map[*devices.Template]*devices.Template{}
		for _, t := range w.store.Current().Templates {
			t.Origin.Carrier = carrier
			hidden = devices.SelectForNode(w.store.Current().Templates, fakeNode("n", true)).Hidden
		}
		for range 3 {
			w.publisher.reporter.reportHidden(fakeNode("n", true), hidden)
		}
		require.Equal(t, []string{"Warning TemplateHidden template low is hidden by template high of the same driver, d, whose priority is 0 and not -1; for example on node n"}, w.events())
		w.publisher.reporter.forgetUnused(w.store.Current().Templates)
		require.Len(t, w.publisher.reporter.hidden, 1)
		w.publisher.reporter.forgetUnused(nil)
		require.Empty(t, w.publisher.reporter.hidden, "once one of the two is gone")
	})
}
