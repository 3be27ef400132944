package faults

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// enough is how many seeds are to have everything.
const enough = 300

// TestFeaturesAreDrawn: some hundred seeds have all features, and all that these draw. A
// seed has one on average.
func TestFeaturesAreDrawn(t *testing.T) {
	t.Parallel()
	drawn, total := map[string]int{}, 0
	for seed := range uint64(enough) {
		for _, k := range chosenKinds(seed + 1) {
			total++
			drawn[k.name]++
			random := chanceOf(seed+1, k.name)
			switch f := k.draw(random).(type) {
			case *installations:
				drawn[f.String()]++
			case *strangers:
				drawn[f.name]++
			case *crashes:
				drawn[f.String()]++
			case *copies:
				for _, odd := range f.odd {
					drawn[odd.name]++
				}
			case *replacements:
				for _, by := range f.by {
					drawn[fmt.Sprint("replacement ", by)]++
				}
			}
		}
	}
	for _, name := range featureNames() {
		require.Greater(t, drawn[name], 20, name)
	}
	for _, one := range allStrangers() {
		require.Positive(t, drawn[one.name], one.name)
	}
	for _, one := range oddities() {
		require.Positive(t, drawn[one.name], one.name)
	}
	for _, owns := range []belonging{sharedPool, templateStatus, deviceClass} {
		for _, both := range []bool{false, true} {
			f := &installations{owns: owns, both: both}
			require.Positive(t, drawn[f.String()], f)
		}
	}
	for by := range replacementCount {
		require.Positive(t, drawn[fmt.Sprint("replacement ", by)])
	}
	for _, real := range []bool{false, true} {
		for _, by := range []string{byCrash, byWipe, byItsPod, byProcess} {
			if f := (&crashes{real: real, by: by}); real == (by == byProcess) || by == byCrash {
				require.Positive(t, drawn[f.String()], f)
			}
		}
	}
	require.InDelta(t, enough, total, enough/3)
}
