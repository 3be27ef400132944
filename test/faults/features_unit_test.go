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
			for _, what := range partsOf(k.draw(chanceOf(seed+1, k.name))) {
				drawn[what]++
			}
		}
	}
	for _, name := range featureNames() {
		require.Greater(t, drawn[name], 20, name)
	}
	for _, what := range allParts() {
		require.Positive(t, drawn[what], what)
	}
	require.InDelta(t, enough, total, enough/3)
}

// partsOf are what a feature has drawn.
func partsOf(f feature) (parts []string) {
	switch f := f.(type) {
	case *installations:
		for _, v := range f.versions {
			parts = append(parts, "version "+v.name)
		}
		f.versions = [2]version{}
		return append(parts, f.String())
	case *crashes:
		return []string{f.String()}
	case *handOvers:
		return []string{fmt.Sprint("moves ", f.moves), fmt.Sprint("only ", f.only), fmt.Sprint("again ", f.again)}
	case *strangers:
		return []string{f.name}
	case *copies:
		for _, odd := range f.odd {
			parts = append(parts, odd.name)
		}
	case *replacements:
		for _, by := range f.by {
			parts = append(parts, fmt.Sprint("replacement ", by))
		}
	}
	return parts
}

// allParts are what features can draw.
func allParts() (parts []string) {
	for _, one := range allStrangers() {
		parts = append(parts, one.name)
	}
	for _, one := range oddities() {
		parts = append(parts, one.name)
	}
	for _, owns := range []belonging{sharedPool, templateStatus, deviceClass} {
		parts = append(parts, (&installations{owns: owns}).String(), (&installations{owns: owns, both: true}).String())
	}
	for _, v := range []version{tested, beforeRecords, firstRecords} {
		parts = append(parts, "version "+v.name)
	}
	for by := range replacementCount {
		parts = append(parts, fmt.Sprint("replacement ", by))
	}
	for _, by := range []string{byCrash, byWipe, byItsPod} {
		parts = append(parts, (&crashes{by: by}).String())
	}
	for _, by := range []string{byCrash, byProcess} {
		parts = append(parts, (&crashes{real: true, by: by}).String())
	}
	for moves := range 3 {
		parts = append(parts, fmt.Sprint("moves ", moves+1))
	}
	parts = append(parts, "only true", "only false", "again true", "again false")
	return parts
}
