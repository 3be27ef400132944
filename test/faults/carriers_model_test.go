package faults

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
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

func sets(settings ...string) content { return content{settings: settings} }

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
		"nothing has happened":        {begin, map[string]int{"f": 1, "m": 2, "a": 3}, nil},
		"a refused object":            {begin.with("object/a", refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/a"}},
		"a refused ConfigMap":         {begin.with(mapSource, refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"a ConfigMap that is gone":    {begin.without(mapSource), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"an empty ConfigMap":          {begin.with(mapSource, says(0)), map[string]int{"f": 1, "a": 3}, nil},
		"an object that is gone":      {begin.without("object/a"), map[string]int{"f": 1, "m": 2}, nil},
		"a refused one that goes":     {begin.with("object/a", refusedVersion()).without("object/a"), map[string]int{"f": 1, "m": 2}, nil},
		"a refused one that is new":   {begin.aged("object/b", 6, refusedVersion()), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"the ConfigMap wins":          {begin.with(mapSource, says(4, "a")), map[string]int{"f": 1, "a": 4}, []string{"object/a"}},
		"the file wins":               {begin.with(mapSource, says(4, "f", "m")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{mapSource}},
		"the clash is gone":           {begin.with(mapSource, says(4, "a")).settled().with(mapSource, says(0)), map[string]int{"f": 1, "a": 3}, nil},
		"the older object wins":       {begin.aged("object/b", 6, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"an older one has come":       {begin.aged("object/b", 4, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 9}, []string{"object/a"}},
		"of one age the first name":   {begin.aged("object/b", 5, says(9, "a")), map[string]int{"f": 1, "m": 2, "a": 3}, []string{"object/b"}},
		"one pool that is shared":     {begin.aged("object/b", 6, shares("b", "p")).aged("object/c", 7, shares("c", "p")), map[string]int{"f": 1, "m": 2, "a": 3, "b": 1}, []string{"object/c"}},
		"two pools that are shared":   {begin.aged("object/b", 6, shares("b", "")).aged("object/c", 7, shares("c", "p")), map[string]int{"f": 1, "m": 2, "a": 3, "b": 1, "c": 1}, nil},
		"one field that is set twice": {begin.aged("object/k", 6, sets(retireWhen)).aged("object/l", 7, sets(podStatus, retireWhen)), map[string]int{"f": 1, "m": 2, "a": 3, retireWhen: 1}, []string{"object/l"}},
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
		"a refused template":       {begin.with("object/a", refusedVersion()).restarted(false), map[string]int{"m": 2, retireWhen: 1}, true, false},
		"a refused configuration":  {begin.with("object/k", refusedVersion(retireWhen)).restarted(false), map[string]int{"m": 2, "a": 3}, true, true},
		"a refused ConfigMap":      {begin.with(mapSource, refusedVersion()).restarted(false), map[string]int{"a": 3, retireWhen: 1}, true, true},
		"a ConfigMap that is gone": {begin.without(mapSource).restarted(false), map[string]int{"a": 3, retireWhen: 1}, true, false},
		"a clash":                  {begin.with(mapSource, says(2, "a")).restarted(false), map[string]int{"a": 2, retireWhen: 1}, true, false},
	} {
		all := test.now.forces()
		require.Len(t, all, 2, about)
		require.Equal(t, test.want, all[1].names(), about)
		require.Equal(t, test.held, all[1].held, about)
		require.Equal(t, test.frozen, all[1].frozen, about)
		require.False(t, all[0].held, "%s: a sidecar that has been there all the time knows", about)
	}
	require.Len(t, begin.restarted(false).forces(), 1, "nothing is refused")
	two := begin.with("object/a", refusedVersion()).restarted(false).without(mapSource).restarted(false)
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
				p.carriers = p.restarted(p.random.IntN(2) == 0)
			}
			for _, f := range p.forces() {
				require.Subset(t, slices.Collect(maps.Keys(f.templates)), slices.Collect(maps.Keys(anchors())), e.name)
			}
			most = max(most, len(p.forces()))
			require.False(t, p.carriers[fileSource].newest.refused, e.name)
			p.carriers = p.settled()
		}
	}
	require.LessOrEqual(t, most, 10*mostForces)
	require.Len(t, drawn, 12, "%v", drawn)
}

// TestHeldPools: what may be of a document that is refused may stay, and only that.
func TestHeldPools(t *testing.T) {
	t.Parallel()
	gpu := right().templates["gpu"]
	begin := carriers{}.with(mapSource, content{settings: []string{retireWhen}}).aged(objectOf("gpu"), 5, content{templates: templates{"gpu": gpu}}).settled()
	look := func(c carriers) *state {
		s := right()
		(&editor{planner: planner{carriers: c}}).see(s)
		return s
	}
	require.Empty(t, look(begin).wrong())
	broken := begin.with(objectOf("gpu"), refusedVersion())
	require.Empty(t, look(broken).wrong())
	require.Empty(t, look(broken.restarted(false)).wrong(), "it stays")
	require.Empty(t, look(broken.restarted(true)).wrong(), "also where nobody knows what was good")
	gone := look(broken.restarted(false))
	gone.slices = nil
	require.Empty(t, gone.wrong(), "that it has gone is for the witness to say")
	require.NotEmpty(t, look(begin.without(objectOf("gpu"))).wrong(), "a document that is gone holds nothing")
	require.NotEmpty(t, look(broken.restarted(false).without(objectOf("gpu"))).wrong())

	fewer := gpu
	fewer.name, fewer.count = "other", 1
	more := broken.restarted(false).aged(objectOf("other"), 6, content{templates: templates{"other": fewer}})
	require.Empty(t, look(more).wrong(), "gpu-1 may be of the document")
}

// TestWitness sees what slices and pools lose, and not what they get.
func TestWitness(t *testing.T) {
	t.Parallel()
	slice := right().slices[0]
	fewer := slice.DeepCopy()
	fewer.Spec.Devices = fewer.Spec.Devices[1:]
	w := &witness{slices: map[string]*resourcev1.ResourceSlice{}}
	for _, one := range []watch.Event{{Type: watch.Added, Object: fewer}, {Type: watch.Modified, Object: &slice}, {Type: watch.Bookmark, Object: &resourcev1.ResourceSlice{}}} {
		w.note(one)
	}
	require.Empty(t, w.losses)
	w.note(watch.Event{Type: watch.Modified, Object: fewer})
	w.note(watch.Event{Type: watch.Deleted, Object: fewer})
	pool := poolKey{"n", gpuDriver, "n"}
	require.Equal(t, []loss{{pool, "devices gpu-0 of slice s"}, {pool, "slice s"}}, w.losses)
}

// TestWrongStatus holds what the status of a template says against what is so.
func TestWrongStatus(t *testing.T) {
	t.Parallel()
	all := carriers{}.with(mapSource, content{settings: []string{retireWhen}}).aged(objectOf("gpu"), 5, content{templates: right().templates}).settled()
	for about, test := range map[string]struct {
		carriers            carriers
		accepted, published string
		generation          int64
		right               bool
	}{
		"all is right":            {all, "True", "True", 2, true},
		"it is published":         {all, "True", "False", 2, false},
		"it is accepted":          {all, "False", "True", 2, false},
		"it is of an old version": {all, "True", "True", 1, false},
		"it is refused":           {all.with(objectOf("gpu"), refusedVersion()), "True", "True", 2, false},
		"it says so":              {all.with(objectOf("gpu"), refusedVersion()), "False", "True", 2, true},
		"it says nothing":         {all, "", "", 2, false},
		"slices may stay":         {all.without(mapSource).restarted(true), "True", "False", 2, true},
	} {
		e := &editor{planner: planner{carriers: test.carriers}}
		s := right()
		e.see(s)
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "gpu", "generation": int64(2)}}}
		if test.accepted != "" {
			object.Object["status"] = map[string]any{"conditions": []any{
				map[string]any{"type": "Accepted", "status": test.accepted, "observedGeneration": test.generation},
				map[string]any{"type": "Published", "status": test.published, "observedGeneration": test.generation},
			}}
		}
		require.Equal(t, test.right, e.wrongStatus(object, s) == "", "%s: %s", about, e.wrongStatus(object, s))
	}
}
