package faults

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// says is the content with templates of these names, each of count devices.
func says(count int, names ...string) content {
	c := content{templates: templates{}}
	for _, name := range names {
		c.templates[name] = poolTemplate{name: name, driver: gpuDriver, kinds: []string{"a"}, device: name, count: count, revision: 1}
	}
	return c
}

func shares(name, pool string) content {
	return content{templates: templates{name: {name: name, driver: fabricDriver, shared: true, pool: pool, count: 1}}}
}

func refusedVersion(settings ...string) content { return content{refused: true, settings: settings} }

// aged has an object say something since it was created.
func (c carriers) aged(name string, created int64, newest content) carriers {
	all := c.with(name, newest)
	one := all[name]
	one.created = created
	all[name] = one
	return all
}

// names are the templates with their counts, and the settings.
func (f *force) names() map[string]int {
	found := map[string]int{}
	for name, t := range f.templates {
		found[name] = t.count
	}
	for _, setting := range f.settings {
		found[setting]++
	}
	return found
}

// TestForce has the model say what the docs promise.
func TestForce(t *testing.T) {
	t.Parallel()
	begin := carriers{}.with(fileSource, says(1, "f")).with(mapSource, says(2, "m")).aged("object/a", 5, says(3, "a")).settled()
	for about, test := range map[string]struct {
		now     carriers
		want    map[string]int
		refused []string
	}{
		"nothing has happened":      {begin, map[string]int{"f": 1, "m": 2, "a": 3}, nil},
		"a refused object":          {begin.with("object/a", refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/a"}},
		"a refused ConfigMap":       {begin.with(mapSource, refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"a ConfigMap that is gone":  {begin.without(mapSource), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"an empty ConfigMap":        {begin.with(mapSource, says(0)), map[string]int{"f": 1, "a": 3}, nil},
		"an object that is gone":    {begin.without("object/a"), map[string]int{"f": 1, "m": 2}, nil},
		"a refused one that goes":   {begin.with("object/a", refusedVersion()).without("object/a"), map[string]int{"f": 1, "m": 2}, nil},
		"a refused one that is new": {begin.aged("object/b", 6, refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"the ConfigMap wins":        {begin.with(mapSource, says(4, "a")), map[string]int{"f": 1, "a": 4}, []string{"object/a"}},
		"the file wins":             {begin.with(mapSource, says(4, "f", "m")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"the clash is gone":         {begin.with(mapSource, says(4, "a")).settled().with(mapSource, says(0)), map[string]int{"f": 1, "a": 3}, nil},
		"the older object wins":     {begin.aged("object/b", 6, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"an older one has come":     {begin.aged("object/b", 4, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 9}, []string{"object/a"}},
		"of one age the first name": {begin.aged("object/b", 5, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"one pool that is shared":   {begin.aged("object/b", 6, shares("b", "p")).aged("object/c", 7, shares("c", "p")), map[string]int{"f": 1, "m": 2, "a": 3, "b": 1}, []string{"object/c"}},
		"two pools that are shared": {begin.aged("object/b", 6, shares("b", "")).aged("object/c", 7, shares("c", "p")), map[string]int{"f": 1, "m": 2, "a": 3, "b": 1, "c": 1}, nil},
		"one field set twice": {
			begin.aged("object/k", 6, content{settings: []string{retireWhen}}).aged("object/l", 7, content{settings: []string{podStatus, retireWhen}}),
			map[string]int{"f": 1, "m": 2, "a": 3, retireWhen: 1}, []string{"object/l"},
		},
	} {
		all := test.now.forces()
		require.Len(t, all, 1, "%s: no sidecar was started since", about)
		require.Equal(t, test.want, all[0].names(), about)
		require.ElementsMatch(t, test.refused, slices.Collect(maps.Keys(all[0].refused)), about)
		require.False(t, all[0].held || all[0].frozen, about)
	}
}

// TestForceAfterARestart: what was good before is not known any more, and stays.
func TestForceAfterARestart(t *testing.T) {
	t.Parallel()
	begin := carriers{}.with(mapSource, says(2, "m")).aged("object/a", 5, says(3, "a")).aged("object/k", 6, content{settings: []string{retireWhen}}).settled()
	for about, test := range map[string]struct {
		now          carriers
		want         map[string]int
		held, frozen bool
	}{
		"a refused template":       {begin.with("object/a", refusedVersion()).restarted(), map[string]int{"m": 2, retireWhen: 1}, true, false},
		"a refused configuration":  {begin.with("object/k", refusedVersion(retireWhen)).restarted(), map[string]int{"m": 2, "a": 3}, true, true},
		"a refused ConfigMap":      {begin.with(mapSource, refusedVersion()).restarted(), map[string]int{"a": 3, retireWhen: 1}, true, true},
		"a ConfigMap that is gone": {begin.without(mapSource).restarted(), map[string]int{"a": 3, retireWhen: 1}, true, false},
		"a clash":                  {begin.with(mapSource, says(2, "a")).restarted(), map[string]int{"a": 2, retireWhen: 1}, true, false},
	} {
		all := test.now.forces()
		require.Len(t, all, 2, about)
		require.Equal(t, test.want, all[1].names(), about)
		require.Equal(t, test.held, all[1].held, about)
		require.Equal(t, test.frozen, all[1].frozen, about)
		require.False(t, all[0].held, "%s: a sidecar that has been there all the time knows", about)
	}
	require.Len(t, begin.restarted().forces(), 1, "nothing is refused")
	two := begin.with("object/a", refusedVersion()).restarted().without(mapSource).restarted()
	require.Len(t, two.forces(), 4, "one sidecar may know what the other does not")
	require.Len(t, two.with("object/a", says(1, "a")).forces(), 2)
	require.Len(t, two.with("object/a", says(1, "a")).settled().without("object/a").with(mapSource, says(1)).forces(), 1)
}

// TestEdits draws many edits one after the other: each can be made, and whatever is
// made, what is in force names every driver, and no more sources are uncertain than
// the oracle has patience for.
func TestEdits(t *testing.T) {
	t.Parallel()
	drawn, most := map[string]bool{}, 0
	for seed := range uint64(100) {
		p := &planner{random: rand.New(rand.NewPCG(seed, 0)), carriers: initialCarriers(initialTemplates()).settled()}
		for range 40 {
			e := p.next()
			drawn[strings.Fields(e.name)[0]] = true
			for _, one := range e.changes {
				p.carriers = p.apply(one)
			}
			if p.random.IntN(2) == 0 {
				p.carriers = p.restarted()
			}
			for _, f := range p.forces() {
				require.Subset(t, slices.Collect(maps.Keys(f.templates)), slices.Collect(maps.Keys(anchors())), e.name)
			}
			most = max(most, len(p.forces()))
			require.False(t, p.carriers[fileSource].newest.refused, e.name)
			p.carriers = p.settled()
		}
	}
	require.LessOrEqual(t, most, 1<<(mostRefused+2))
	require.Len(t, drawn, 12, "%v", drawn)
}
