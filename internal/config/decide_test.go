package config

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	goodSpec   = "spec: {driver: d, devices: [{name: gpu}]}"
	brokenSpec = "spec: {driver: d, devices: []}"
)

// TestRefusedObjectAfterARestart: of an object that is refused no version is in
// force after a restart; what it made is not to be retired, and the set says so,
// until it is good or gone.
func TestRefusedObjectAfterARestart(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(w *objectsWorld){
		"good": func(w *objectsWorld) { w.take("a", 3, "{driver: d, devices: [{name: gpu}]}") },
		"gone": func(w *objectsWorld) { w.drop("ResourcePoolTemplate", "a") },
	} {
		w := newObjectsWorld(t, "")
		w.begin(custom(t, "ResourcePoolTemplate", "a", 2, brokenSpec), custom(t, "ResourcePoolTemplate", "b", 1, goodSpec))
		require.Equal(t, []string{"b d"}, w.inForce(), "the others come into force")
		require.Len(t, w.store.Current().Unsettled, 1)
		require.ErrorContains(t, w.store.Current().Unsettled[0], `ResourcePoolTemplate "a": spec.devices`)
		settle(w)
		require.Empty(t, w.store.Current().Unsettled, name)
	}

	w := newObjectsWorld(t, "")
	w.begin(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec))
	w.take("a", 2, "{driver: d, devices: []}")
	require.Equal(t, []string{"a d"}, w.inForce())
	require.Empty(t, w.store.Current().Unsettled, "its last good version is known")
	w.take("b", 1, "{driver: d, devices: []}")
	require.Empty(t, w.store.Current().Unsettled, "it has never made anything")
}

// TestRefusedConfigurationAfterARestart: without the object that says when, nothing
// is published or retired; its defaults say something else.
func TestRefusedConfigurationAfterARestart(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	accepted := func() Acceptance { return w.store.Acceptance("ResourcePoolTemplate")["a"] }
	require.Nil(t, w.store.Acceptance("ResourcePoolTemplate"), "the objects are not known")
	w.begin(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec), custom(t, "KwokDRAConfiguration", "k", 1, "spec: {podStatus: Nonsense}"))
	require.Nil(t, w.store.Current())
	require.NoError(t, accepted().Err)
	require.ErrorContains(t, accepted().Pending, `KwokDRAConfiguration "k": spec.podStatus`)
	w.see(custom(t, "KwokDRAConfiguration", "k", 2, "spec: {podStatus: Faithful}"))
	require.NoError(t, accepted().Pending)
	require.True(t, w.store.Current().Faithful)
	w.see(custom(t, "KwokDRAConfiguration", "k", 3, "spec: {podStatus: Nonsense}"))
	require.True(t, w.store.Current().Faithful, "the last good version stays in force")
	w.see(custom(t, "KwokDRAConfiguration", "new", 1, "spec: {podStatus: Nonsense}"))
	w.take("b", 1, "{driver: e, devices: [{name: gpu}]}")
	require.Equal(t, []string{"a d", "b e"}, w.inForce(), "a new one that is refused holds up nothing")
}

// TestOlderObjectWins, live and after a restart, and the error names the other.
func TestOlderObjectWins(t *testing.T) {
	t.Parallel()
	const shared = "spec: {driver: d, sharedWith: {allNodes: true}, poolName: p, devices: [{name: nic}]}"
	aged := func(kind, name, spec string, age int64) *unstructured.Unstructured {
		object := custom(t, kind, name, 1, spec)
		object.SetCreationTimestamp(metav1.Unix(age, 0))
		return object
	}
	for name, test := range map[string]struct {
		older, younger *unstructured.Unstructured
		want           string
	}{
		"pool":  {aged("ResourcePoolTemplate", "b", shared, 1), aged("ResourcePoolTemplate", "a", shared, 2), "template b makes the pool p"},
		"field": {aged("KwokDRAConfiguration", "b", "spec: {retryInterval: 1s}", 1), aged("KwokDRAConfiguration", "a", "spec: {retryInterval: 2s}", 2), `also set in custom resource KwokDRAConfiguration "b"`},
	} {
		for _, live := range []bool{true, false} {
			w := newObjectsWorld(t, "")
			if live {
				w.begin(test.younger)
				w.see(test.older)
			} else {
				w.begin(test.younger, test.older)
			}
			all := w.store.Acceptance(test.older.GetKind())
			require.NoError(t, all["b"].Err, "%s, live: %v", name, live)
			require.ErrorContains(t, all["a"].Err, test.want, "%s, live: %v", name, live)
		}
	}
}

// TestClashesBetweenCarriersAreLookedAtAgain: whichever of them goes, the other
// comes into force.
func TestClashesBetweenCarriersAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, client: fake.NewClientset(), store: NewStore(mapCarrier, ObjectsCarrier), recorder: record.NewFakeRecorder(100)}
		c.create(template("a"))
		configMap := NewConfigMap(c.client, mapName, c.store, c.recorder)
		c.run(configMap)
		w := worldOf(t, c.store)
		w.begin(custom(t, "ResourcePoolTemplate", "a", 1, "spec: {driver: e, devices: [{name: gpu}]}"))
		require.Equal(t, []string{"a d"}, w.inForce())
		require.ErrorContains(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err, "also in ConfigMap kube-system/kwok-dra, key a.yaml")

		c.update(configMapOf())
		require.Equal(t, []string{"a e"}, w.inForce())
		require.NoError(t, w.store.Acceptance("ResourcePoolTemplate")["a"].Err)
		c.update(configMapOf(template("b")))
		require.Equal(t, []string{"b d", "a e"}, w.inForce())
	})
}

// TestConfigMapThatClashesAtTheStart is taken once the clash is gone.
func TestConfigMapThatClashesAtTheStart(t *testing.T) {
	t.Parallel()
	store := NewStore("first", mapCarrier)
	require.NoError(t, store.Replace("first", decode(t, template("a"))))
	configMap := NewConfigMap(fake.NewClientset(), mapName, store, record.NewFakeRecorder(10))
	configMap.see(t, configMapOf(template("a"), template("b")))
	require.Nil(t, store.Current())
	require.NoError(t, store.Replace("first", decode(t, template("c"))))
	require.Equal(t, []string{"c", "a", "b"}, setNames(store.Current()))
	requireMetrics(t, store, mapCarrier, 1, 1)
}

// TestClashAtTheStart: an object that comes before the ConfigMap that it contradicts
// was not in force, so what it may have made stays, in whichever order they come.
func TestClashAtTheStart(t *testing.T) {
	t.Parallel()
	const other = "spec: {driver: d, devices: [{name: nic, count: 4}]}"
	for _, objectFirst := range []bool{true, false} {
		w := worldOf(t, NewStore(mapCarrier, ObjectsCarrier))
		begin := func() { w.begin(custom(t, "ResourcePoolTemplate", "a", 1, other)) }
		take := func() { require.NoError(t, w.store.Replace(mapCarrier, decode(t, template("a")))) }
		if objectFirst {
			begin()
			take()
		} else {
			take()
			begin()
		}
		require.Len(t, w.store.Current().Unsettled, 1, "object first: %v", objectFirst)
	}
}

// TestObjectBesideAConfigMapThatIsBrokenAtTheStart is not in force until that is good,
// so it does not count as good before.
func TestObjectBesideAConfigMapThatIsBrokenAtTheStart(t *testing.T) {
	t.Parallel()
	w := worldOf(t, NewStore(mapCarrier, ObjectsCarrier))
	configMap := NewConfigMap(fake.NewClientset(), mapName, w.store, w.recorder)
	configMap.see(t, configMapOf("kind: Nonsense"))
	w.begin(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec))
	require.Nil(t, w.store.Current())
	w.take("a", 2, "{driver: d, devices: []}")
	configMap.see(t, configMapOf(template("b")))
	require.Equal(t, []string{"b d"}, w.inForce())
	require.Len(t, w.store.Current().Unsettled, 1)
}

// TestConfigMapThatGoesWhileItIsBroken from the start is one that does not exist.
func TestConfigMapThatGoesWhileItIsBroken(t *testing.T) {
	t.Parallel()
	store := NewStore(mapCarrier, ObjectsCarrier)
	configMap := NewConfigMap(fake.NewClientset(), mapName, store, record.NewFakeRecorder(10))
	worldOf(t, store).begin()
	configMap.see(t, configMapOf("kind: Nonsense"))
	require.Nil(t, store.Current())
	configMap.see(t, nil)
	require.Len(t, store.Current().Unsettled, 1, "the others count, and what it made stays")
}

// TestConfigMapThatIsGoneAfterARestart: beside custom resources the others count,
// but what it made is not retired.
func TestConfigMapThatIsGoneAfterARestart(t *testing.T) {
	t.Parallel()
	store := NewStore(mapCarrier, ObjectsCarrier)
	configMap := NewConfigMap(fake.NewClientset(), mapName, store, record.NewFakeRecorder(10))
	worldOf(t, store).begin()
	configMap.see(t, nil)
	require.Len(t, store.Current().Unsettled, 1)
	require.ErrorContains(t, store.Current().Unsettled[0], "ConfigMap kube-system/kwok-dra does not exist: create it, empty where it is to have nothing")
	configMap.see(t, configMapOf("kind: Nonsense"))
	require.Len(t, store.Current().Unsettled, 1, "nor is it when it comes back and is refused")
	configMap.see(t, configMapOf())
	require.Empty(t, store.Current().Unsettled)
}

// TestReloadSignals: a refused object shows until it is good or gone.
func TestReloadSignals(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec))
	requireMetrics(t, w.store, ObjectsCarrier, 0, 1)
	w.take("a", 2, "{driver: d, devices: []}")
	requireMetrics(t, w.store, ObjectsCarrier, 1, 0)
	w.take("b", 1, "{driver: d, devices: [{name: gpu}]}")
	requireMetrics(t, w.store, ObjectsCarrier, 1, 0)
	w.drop("ResourcePoolTemplate", "a")
	requireMetrics(t, w.store, ObjectsCarrier, 1, 1)
}

// TestDecideIsAFunctionOfTheSources: it decides the same whatever was decided
// before, as long as the same versions were good.
func TestDecideIsAFunctionOfTheSources(t *testing.T) {
	t.Parallel()
	versions := []*Documents{nil, {}, decode(t, template("a")), decode(t, template("b")), decode(t, template("a")+"---\n"+template("b")), decode(t, configured("k", "podStatus: Faithful"))}
	for _, first := range versions {
		for _, second := range versions {
			for _, good := range versions {
				winner, other := newestOrBroken(first, nil), newestOrBroken(second, good)
				once := decideTwice(t, winner, other)
				require.Equal(t, first, once.chosen[winner], "the first source always wins")
				require.False(t, second != nil && once.chosen[other] != second && once.refused[other] == nil, "what is not in force is refused")
				require.False(t, good != nil && once.chosen[other] == nil && !slices.Contains(versions[2:], first), "nothing is dropped without a clash")
			}
		}
	}
}

func newestOrBroken(newest, good *Documents) *source {
	one := &source{newest: newest, history: history{good: good, presentAtStart: good == nil}}
	if newest == nil {
		one.decodeErr = errors.New("broken")
	}
	return one
}

// decideTwice decides, settles that, and requires that the same is decided again.
func decideTwice(t *testing.T, sources ...*source) decision {
	once := decideVersions(sources)
	for _, one := range sources {
		(&carrier{}).recordDecision(klog.Background(), one, once.chosen[one], once.refused[one])
	}
	again := decideVersions(sources)
	require.Equal(t, once.chosen, again.chosen)
	require.Equal(t, once.refused, again.refused)
	return once
}

// TestConfigurationsThatClashAtTheStart do not hold up everything: the younger one
// was not in force before either.
func TestConfigurationsThatClashAtTheStart(t *testing.T) {
	t.Parallel()
	w := newObjectsWorld(t, "")
	w.begin(custom(t, "KwokDRAConfiguration", "a", 1, "spec: {podStatus: Faithful}"), custom(t, "KwokDRAConfiguration", "b", 1, "spec: {podStatus: Minimal}"))
	require.True(t, w.store.Current().Faithful)
	require.ErrorContains(t, w.store.Acceptance("KwokDRAConfiguration")["b"].Err, `also set in custom resource KwokDRAConfiguration "a"`)
}
