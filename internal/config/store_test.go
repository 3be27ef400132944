package config

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

func setNames(set *Set) []string {
	names := []string{}
	for _, t := range set.Templates {
		names = append(names, t.Name)
	}
	return names
}

func TestStoreIsNilUntilAllCarriersAreGood(t *testing.T) {
	t.Parallel()
	store := NewStore("one", "two")
	require.Nil(t, store.Current())
	require.NoError(t, store.Replace("two", decode(t, template("b"))))
	require.Nil(t, store.Current())
	require.NoError(t, store.Replace("one", decode(t, template("a"))))
	require.Equal(t, []string{"a", "b"}, setNames(store.Current()), "in the order of the carriers")
	require.NoError(t, store.Replace("one", &Documents{}))
	require.Equal(t, []string{"b"}, setNames(store.Current()))
}

func TestStoreKeepsTheLastGoodVersion(t *testing.T) {
	t.Parallel()
	store := NewStore("one", "two")
	changes := 0
	store.OnChange(func() { changes++ })
	require.NoError(t, store.Replace("one", decode(t, template("a"))))
	require.NoError(t, store.Replace("two", decode(t, template("b"))))
	good := store.Current()

	err := store.Replace("two", decode(t, template("c")+"---\n"+template("a")))
	require.EqualError(t, err, `file.yaml, document 2: ResourcePoolTemplate "a": metadata.name: also in file.yaml, document 1: rename one`)
	require.Same(t, good, store.Current())
	require.Equal(t, 1, changes)

	require.NoError(t, store.Replace("one", &Documents{}))
	require.Equal(t, []string{"c", "a"}, setNames(store.Current()), "the refused version comes into force once it can")
	require.ErrorContains(t, store.Replace("three", &Documents{}), `unknown carrier "three"`)
}

// TestStoreSeesContradictionsEarly: also before all carriers are there.
func TestStoreSeesContradictionsEarly(t *testing.T) {
	t.Parallel()
	store := NewStore("one", "two", "three")
	require.NoError(t, store.Replace("one", decode(t, template("a"))))
	require.Error(t, store.Replace("two", decode(t, template("a"))))
	require.NoError(t, store.Replace("two", decode(t, template("b"))))
	require.NoError(t, store.Replace("three", decode(t, template("c"))))
	require.Equal(t, []string{"a", "b", "c"}, setNames(store.Current()))
}

func TestDuplicatesNameBothSources(t *testing.T) {
	t.Parallel()
	read := func(source, text string) *Documents {
		documents, err := Decode(source, []byte(text))
		require.NoError(t, err)
		return documents
	}
	_, err := NewSet(read("x.yaml", template("a")+"---\n"+configured("c", "retireWhen: {}")), read("w.yaml", template("a")+"---\n"+configured("d", "retireWhen: {}")))
	require.ErrorContains(t, err, `w.yaml, document 1: ResourcePoolTemplate "a": metadata.name: also in x.yaml, document 1: rename one`)
	require.ErrorContains(t, err, `w.yaml, document 2: KwokDRAConfiguration "d": spec.retireWhen: also set in x.yaml, document 2: remove one`)
	_, err = NewSet(read("x.yaml", template("a")+"---\n"+template("a")))
	require.ErrorContains(t, err, `x.yaml, document 2: ResourcePoolTemplate "a": metadata.name: also in x.yaml, document 1`)
}

// TestConfigurationsAddUp: several documents may each set some fields.
func TestConfigurationsAddUp(t *testing.T) {
	t.Parallel()
	set, err := NewSet(
		decode(t, configured("nodes", "retireWhen: {}")),
		decode(t, configured("pods", "failWhen: {}, podStatus: Faithful, retryInterval: 5s, bindingDelay: 2s")),
		decode(t, configured("empty", "")),
	)
	require.NoError(t, err)
	require.NotNil(t, set.retireWhen)
	require.NotNil(t, set.FailWhen)
	require.True(t, set.Faithful)
	require.Equal(t, 5*time.Second, set.RetryInterval)
	require.Equal(t, 2*time.Second, set.BindingDelay)

	defaults, err := NewSet()
	require.NoError(t, err)
	require.False(t, defaults.Faithful)
	require.Equal(t, time.Minute, defaults.RetryInterval)
	require.Zero(t, defaults.BindingDelay)
	require.Nil(t, defaults.FailWhen)
	for name, selector := range map[string]*lifecycle.Selector{"prepareWhen": defaults.PrepareWhen, "unprepareWhen": defaults.UnprepareWhen} {
		matched, err := selector.Matches(t.Context(), lifecycle.NewObject(&corev1.Pod{}))
		require.NoError(t, err)
		require.True(t, matched, name)
	}
}

func TestSelectorsOfASet(t *testing.T) {
	t.Parallel()
	matches := func(selector *lifecycle.Selector, status corev1.ConditionStatus) bool {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
		matched, err := selector.Matches(t.Context(), lifecycle.NewObject(node))
		require.NoError(t, err)
		return matched
	}
	own := template("own", "  publishWhen: {}\n  retireWhen: {matchExpressions: [{key: .metadata.labels.gone, operator: Exists}]}\n")
	for name, test := range map[string]struct {
		configuration                         string
		publishesUnready, retires, ownRetires bool
	}{
		"defaults":   {"", false, false, false},
		"configured": {"---\n" + configured("c", "publishWhen: {}, retireWhen: {}"), true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := NewSet(decode(t, template("a")+"---\n"+own+test.configuration))
			require.NoError(t, err)
			plain, special := set.Templates[0], set.Templates[1]
			require.True(t, matches(set.PublishWhen(plain), corev1.ConditionTrue))
			require.Equal(t, test.publishesUnready, matches(set.PublishWhen(plain), corev1.ConditionFalse))
			require.Equal(t, test.retires, matches(set.RetireWhen(plain), corev1.ConditionTrue))
			require.True(t, matches(set.PublishWhen(special), corev1.ConditionFalse), "the template's own selector wins")
			require.Equal(t, test.ownRetires, matches(set.RetireWhen(special), corev1.ConditionTrue))
		})
	}
}

func TestStoreMetrics(t *testing.T) {
	t.Parallel()
	store := NewStore("one")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(store)
	require.Zero(t, testutil.CollectAndCount(store))
	require.NoError(t, store.Replace("one", &Documents{}))
	requireMetrics(t, store, "one", 0, 1)
	require.Error(t, store.Replace("one", decode(t, template("a")+"---\n"+template("a"))))
	requireMetrics(t, store, "one", 1, 0)
	require.NoError(t, store.Replace("one", &Documents{}))
	requireMetrics(t, store, "one", 1, 1)
	_, err := registry.Gather()
	require.NoError(t, err)
	problems, err := testutil.CollectAndLint(store)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func requireMetrics(t *testing.T, store *Store, carrier string, refused, successful float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(store)
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == carrier {
				found[family.GetName()] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"kwok_dra_config_refused_total": refused, "kwok_dra_config_last_reload_successful": successful}, found)
}

// TestStoreIsShared: carriers replace and workers read at once; a reader always
// sees a whole set.
func TestStoreIsShared(t *testing.T) {
	t.Parallel()
	store := NewStore("one", "two")
	require.NoError(t, store.Replace("one", decode(t, template("a"))))
	require.NoError(t, store.Replace("two", &Documents{}))
	both := decode(t, template("b")+"---\n"+template("c"))
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for range 50 {
				_ = store.Replace("two", both)
				_ = store.Replace("two", &Documents{})
			}
		})
		running.Go(func() {
			for range 200 {
				if n := len(store.Current().Templates); n != 1 && n != 3 {
					t.Errorf("%d templates", n)
				}
			}
		})
	}
	running.Wait()
}

// TestSizeOfAllTemplates: all templates together have a limit, which the later one meets.
func TestSizeOfAllTemplates(t *testing.T) {
	t.Parallel()
	many := func(from, to int) (all string) {
		for i := range to - from {
			all += strings.Replace(template(fmt.Sprint("t", from+i)), "name: gpu", "name: gpu, count: 10000", 1) + "---\n"
		}
		return all
	}
	store := NewStore("one", "two")
	require.NoError(t, store.Replace("one", decode(t, many(0, 6))))
	require.NoError(t, store.Replace("two", decode(t, many(6, 10))))
	require.Len(t, store.Current().Templates, 10)
	require.ErrorContains(t, store.Replace("two", decode(t, many(6, 11))), `file.yaml, document 5: ResourcePoolTemplate "t10": spec.devices: Forbidden: all templates together may make at most 100000 devices, and make 110000`)
	require.Len(t, store.Current().Templates, 10)
	_, err := Decode("file.yaml", []byte(many(0, 13)))
	require.ErrorContains(t, err, `document 12: ResourcePoolTemplate "t11": spec.devices: Forbidden: all templates together may make at most 100000 devices`, "none is made in vain")
}

// TestCounterSetsOfAllTemplates count as devices do: a few documents cannot make any number of them.
func TestCounterSetsOfAllTemplates(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: t%d}\nspec: {driver: d%d, devices: [{name: gpu}], sharedCounters: [{name: s, count: 10000, counters: {c: {value: 1}}}]}\n", i, i)
	}
	_, err := Decode("t.yaml", []byte(all.String()))
	require.ErrorContains(t, err, "all templates together may make at most 100000 counter sets")
}
