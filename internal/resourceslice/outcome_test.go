package resourceslice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/plan"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestOutcomes: slices are counted for the templates that they have something
// of, and a template that clashes with another says so.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	store := storeOf(t, template("a", "d", "{name: x, count: 200}")+template("b", "d", "{name: w}")+template("c", "d", "{name: w}")+
		template("of-other", "e", oneOfEach))
	node := fakeNode("n", true)
	want := plan.DesiredPools(t.Context(), &plan.View{Set: store.Current(), Node: node})
	results := results{drivers: map[string]result{}}
	for _, pool := range want.Pools {
		results.drivers[pool.Driver] = result{fitted: features.Fitted{Pools: []devices.Pool{pool}, Layout: devices.CountersApart}}
	}
	got := results.templateOutcomes(&want)
	problem := got["c"].Problem
	require.EqualError(t, problem, "template b and template c both have the device w in pool n of driver d: rename one, or set poolName or priority; template c is left out on this node")
	require.Equal(t, map[string]Outcome{
		"a":        {Slices: 2, Devices: 200},
		"b":        {Slices: 1, Devices: 1},
		"c":        {Problem: problem},
		"of-other": {Slices: 1, Devices: 1},
	}, got)
}

// TestClash: what was there stays when a template comes that clashes, and the
// rest of the driver is kept up to date.
func TestClash(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("a", "d", "{name: x}"), fakeNode("n", true))
		w.wrote("create 1")
		configtest.Replace(t, w.store, template("a", "d", "{name: x, count: 2}")+template("b", "d", "{name: x-1}"))
		w.wrote("patch 1")
		require.Len(t, w.list(t)[0].Spec.Devices, 2)
		require.Equal(t, []string{"Warning PublishFailed template a and template b both have the device x-1 in pool n of driver d: " +
			"rename one, or set poolName or priority; template b is left out on this node"}, w.events())
		w.addNode(fakeNode("m", true))
		w.wrote("create 1")
		configtest.Replace(t, w.store, template("a", "d", "{name: x, count: 2}")+template("b", "d", "{name: w}"))
		w.wrote("patch 2")
	})
}
