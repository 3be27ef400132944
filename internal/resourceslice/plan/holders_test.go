package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// TestHolders: of nodes with one pool name the first created has the pool, whichever node plans.
func TestHolders(t *testing.T) {
	t.Parallel()
	set := configtest.SetOf(t, "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: t}\n"+
		"spec: {driver: d, poolName: 'of-{{ .Node.metadata.labels.zone }}', devices: [{name: gpu}]}\n")
	created := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	published := []*facts.Slice{{PoolState: facts.PoolState{PoolID: facts.PoolID{Driver: "d", Pool: "of-z1"}}}}
	for name, test := range map[string]struct {
		existing []*facts.Slice
		holders  []Holder
		refused  string
	}{
		"nobody":                 {nil, nil, ""},
		"a later node":           {nil, []Holder{{Node: "a", Created: created(6)}}, ""},
		"an earlier node":        {published, []Holder{{Node: "o", Created: created(4)}}, "of driver d on node o: "},
		"one of them is earlier": {nil, []Holder{{Node: "l", Created: created(6)}, {Node: "o", Created: created(3)}}, "on node o: "},
		"as old, by name":        {published, []Holder{{Node: "m", Created: created(5)}}, "on node m: "},
		"as old, after it":       {published, []Holder{{Node: "o", Created: created(5)}}, ""},
		"shared":                 {published, []Holder{{}}, "that nodes share: "},
		"unknown":                {nil, []Holder{{Node: "o", IsUnknown: true}}, "on node o: "},
		"unknown, but published": {published, []Holder{{Node: "a", IsUnknown: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := fakeNode("n", true)
			node.CreationTimestamp = metav1.NewTime(created(5))
			view := &View{Set: set, Node: node, Existing: test.existing}
			desired := DesiredPools(t.Context(), view)
			desired.RefuseHeldPools(view, map[facts.PoolID][]Holder{{Driver: "d", Pool: "of-z1"}: test.holders, {Driver: "d", Pool: "of-z2"}: {{}}})
			if test.refused == "" {
				require.Len(t, desired.Pools, 1)
				require.Empty(t, desired.Refused)
				return
			}
			require.Empty(t, desired.Pools)
			require.ErrorContains(t, desired.Problems()["template"], test.refused)
		})
	}
}

// TestHoldersOfWhatIsNotPublished: a node that is not to publish its pool yet has no reason to complain.
func TestHoldersOfWhatIsNotPublished(t *testing.T) {
	t.Parallel()
	set := configtest.SetOf(t, "apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: t}\nspec: {driver: d, devices: [{name: gpu}]}\n")
	node := fakeNode("n", true)
	problemsOf := func() map[string]error {
		view := &View{Set: set, Node: node}
		desired := DesiredPools(t.Context(), view)
		desired.RefuseHeldPools(view, map[facts.PoolID][]Holder{{Driver: "d", Pool: "n"}: {{}}})
		return desired.Problems()
	}
	require.Len(t, problemsOf(), 1)
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	require.Empty(t, problemsOf())
}
