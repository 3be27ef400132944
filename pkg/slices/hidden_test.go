package slices

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// TestHidden: a template of a lower priority on the same nodes is told of once, to
// the object that has it, and in outcomes and previews.
func TestHidden(t *testing.T) {
	t.Parallel()
	store := storeOf(t, template("low", "d", "{name: w}")+"  priority: -1\n"+template("high", "d", "{name: x}")+template("of-other", "e", "{name: w}"))
	set := store.Current()
	nodes := []*corev1.Node{fakeNode("n", true), fakeNode("m", true)}
	want := desire(t.Context(), set, nodes[0], nil, nil)
	require.Len(t, want.templates, 2)
	var outcomes map[string]Outcome
	p := &Publisher{outcomes: func(_ string, all map[string]Outcome) { outcomes = all }, told: map[[2]string]bool{}}
	p.report(nodeScope("n"), &want, want.templates, results{})
	require.Equal(t, Outcome{HiddenBy: "high"}, outcomes["low"])
	require.Len(t, outcomes, 3)

	renderer, err := EverythingOn("1.36")
	require.NoError(t, err)
	preview, err := NewRendererFor(renderer, func(string, string) {}).Preview(t.Context(), State{Config: set, Nodes: nodes})
	require.NoError(t, err)
	require.Len(t, preview.Hidden, 1)
	require.Equal(t, "template low is hidden by template high of the same driver, d, whose priority is 0 and not -1, on 2 nodes", preview.Hidden[0].String())
	require.Empty(t, preview.Problems)
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
			hidden = devices.Hidden(w.store.Current().Templates, devices.ForDriver(w.store.Current().Templates, fakeNode("n", true)), fakeNode("n", true))
		}
		for range 3 {
			w.publisher.tellHidden(fakeNode("n", true), hidden)
		}
		require.Equal(t, []string{"Warning TemplateHidden template low is hidden by template high of the same driver, d, whose priority is 0 and not -1; for example on node n"}, w.events())
	})
}
