package resourceslice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// storeOf is a store with these documents.
func storeOf(t testing.TB, text string) *config.Store {
	t.Helper()
	store := config.NewStore("test")
	configtest.Replace(t, store, text)
	return store
}

// template is a document. The devices are in YAML's flow form.
func template(name, driver, devices string) string {
	return "---\napiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: " + name + "}\n" +
		"spec:\n  driver: " + driver + "\n  devices: [" + devices + "]\n"
}

const (
	plain   = "{name: plain}"
	tainted = "{name: tainted, count: 2, taints: [{key: k, effect: NoSchedule}]}"
	shared  = "{name: shared, allowMultipleAllocations: false}"
	binding = "{name: binding, bindsToNode: true, bindingConditions: [a, b], bindingFailureConditions: [c]}"
	bound   = "{name: bound, bindsToNode: false}"
)

func rendered(t testing.TB, store *config.Store, node *corev1.Node) []devices.Pool {
	t.Helper()
	var all []devices.Pool
	for _, templates := range devices.SelectForNode(store.Current().Templates, node).ByDriver {
		pools, refusals, err := devices.PoolsForNode(templates, lifecycle.NewObject(node), nil)
		require.NoError(t, err)
		require.Empty(t, refusals)
		all = append(all, pools...)
	}
	return all
}

// reports are the fields that were dropped, each once.
type reports struct {
	mu    sync.Mutex
	names []string
}

func (r *reports) add(all []features.Dropped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dropped := range all {
		if name := dropped.Source + " " + dropped.Field.Name; !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
	}
}

// fit is what pools come to for a server.
func fit(t testing.TB, prober *Prober, pools []devices.Pool) features.Fitted {
	t.Helper()
	fitted, err := features.Fit(t.Context(), prober, pools)
	require.NoError(t, err)
	return fitted
}

func taintCount(pools []devices.Pool) int {
	return gated(pools)["taints"]
}

// gated counts what the devices have of gated fields.
func gated(pools []devices.Pool) map[string]int {
	counts := map[string]int{}
	count := func(name string, n int) {
		if n > 0 {
			counts[name] += n
		}
	}
	present := func(value *bool) int {
		if value == nil {
			return 0
		}
		return 1
	}
	for _, pool := range pools {
		for _, device := range pool.Devices {
			count("taints", len(device.Taints))
			count("shared", present(device.AllowMultipleAllocations))
			count("bound", present(device.BindsToNode))
			count("conditions", len(device.BindingConditions))
			count("failures", len(device.BindingFailureConditions))
		}
	}
	return counts
}

func TestProber(t *testing.T) {
	t.Parallel()
	const taints, capacity, conditions = "DRADeviceTaints", "DRAConsumableCapacity", "DRADeviceBindingConditions"
	for name, test := range map[string]struct {
		documents string
		off       []string
		want      map[string]int
		asks      int
		reports   []string
	}{
		"not used":      {template("a", "d", plain), []string{taints, capacity, conditions}, map[string]int{}, 0, nil},
		"kept":          {template("a", "d", tainted), nil, map[string]int{"taints": 2}, 1, nil},
		"dropped":       {template("a", "d", plain+", "+tainted), []string{taints}, map[string]int{}, 1, []string{"a taints"}},
		"two templates": {template("a", "d", plain) + template("b", "d", tainted), []string{taints}, map[string]int{}, 1, []string{"b taints"}},
		"two drivers":   {template("a", "d", tainted) + template("b", "e", tainted), []string{taints}, map[string]int{}, 1, []string{"a taints", "b taints"}},
		"all kept": {
			template("a", "d", tainted+", "+shared+", "+binding), nil,
			map[string]int{"taints": 2, "shared": 1, "bound": 1, "conditions": 2, "failures": 1},
			3, nil,
		},
		"shared dropped": {
			template("a", "d", tainted+", "+shared), []string{capacity}, map[string]int{"taints": 2}, 2, []string{"a allowMultipleAllocations"},
		},
		"binding dropped as one": {
			template("a", "d", shared+", "+binding), []string{conditions}, map[string]int{"shared": 1}, 2, []string{"a bindingConditions"},
		},
		"bindsToNode alone kept":    {template("a", "d", bound), nil, map[string]int{"bound": 1}, 1, nil},
		"bindsToNode alone dropped": {template("a", "d", bound), []string{conditions}, map[string]int{}, 1, []string{"a bindingConditions"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := newServer(), &reports{}
			s.off = test.off
			prober := NewProber(s)
			store := storeOf(t, test.documents)
			for _, name := range []string{"n1", "n2", "n1"} {
				node := fakeNode(name, true)
				fitted := fit(t, prober, rendered(t, store, node))
				require.Equal(t, test.want, gated(fitted.Pools))
				r.add(fitted.Dropped)
			}
			require.Equal(t, test.asks, s.takeWrites()["dry-run"], "asked once for each field")
			require.ElementsMatch(t, test.reports, r.names, "dropped for each template and field")
			require.Empty(t, s.list(t), "a dry run stores nothing")
		})
	}
}

// TestProberClearsACopy: pools share their devices' parts with the
// template, which may be rendered again for a server that keeps them.
func TestProberClearsACopy(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.off = []string{"DRADeviceTaints"}
	prober := NewProber(s)
	store, node := storeOf(t, template("a", "d", tainted)), fakeNode("n", true)
	pools := rendered(t, store, node)
	before := pools[0].Devices
	require.Zero(t, taintCount(fit(t, prober, pools).Pools))
	require.Len(t, before[0].Taints, 1)
	require.Equal(t, 2, taintCount(rendered(t, store, node)))
}

// TestProberAsksAgainAfterAnError: later, however many workers need the answer.
func TestProberAsksAgainAfterAnError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer()
		s.Refuse(func(string) error { return errors.New("down") })
		prober := NewProber(s)
		store, node := storeOf(t, template("a", "d", tainted)), fakeNode("n", true)
		pools := rendered(t, store, node)
		for range 100 {
			_, err := features.Fit(t.Context(), prober, pools)
			require.EqualError(t, err, "ask the API server whether it keeps taints: down")
		}
		require.Equal(t, map[string]int{"dry-run": 1}, s.takeWrites())
		s.Refuse(nil)
		time.Sleep(probeRetryInterval)
		require.Equal(t, 2, taintCount(fit(t, prober, pools).Pools))
	})
}

// TestProberAsksOnceForAFleet: the first caller asks, others wait.
func TestProberAsksOnceForAFleet(t *testing.T) {
	t.Parallel()
	s, r := newServer(), &reports{}
	s.off = []string{"DRADeviceTaints"}
	prober := NewProber(s)
	store := storeOf(t, template("a", "d", tainted))
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			node := fakeNode("n", true)
			pools := rendered(t, store, node)
			fitted, err := features.Fit(t.Context(), prober, pools)
			if err != nil || taintCount(fitted.Pools) > 0 {
				t.Errorf("err %v, %d taints", err, taintCount(fitted.Pools))
			}
			r.add(fitted.Dropped)
		})
	}
	running.Wait()
	require.Equal(t, map[string]int{"dry-run": 1}, s.takeWrites())
	require.Equal(t, []string{"a taints"}, r.names)
}

// TestProbeIsOneDevice: it asks with a slice of its own, however large the pool.
func TestProbeIsOneDevice(t *testing.T) {
	t.Parallel()
	s := newServer()
	prober := NewProber(s)
	store, node := storeOf(t, template("a", "d", "{name: plain, count: 200}, "+tainted)), fakeNode("n", true)
	fit(t, prober, rendered(t, store, node))
	require.Len(t, s.Actions(), 1)
	probe := s.Actions()[0].(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceSlice)
	require.Empty(t, probe.Name)
	require.Equal(t, "kwok-dra-probe-", probe.GenerateName)
	require.Len(t, probe.Spec.Devices, 1)
	require.Equal(t, "probe", probe.Spec.Devices[0].Name)
	require.Equal(t, resourcev1.ResourcePool{Name: "probe", Generation: 1, ResourceSliceCount: 1}, probe.Spec.Pool)
}

// allFields are devices with fields of five gates.
const allFields = "{name: gpu, allowMultipleAllocations: true, bindsToNode: true, taints: [{key: a, effect: NoSchedule}], attributes: {x: {strings: [a]}}}"

// invalidSlice is what an API server answers that refuses fields of a slice.
func invalidSlice(fields ...string) error {
	var list field.ErrorList
	for _, name := range fields {
		list = append(list, field.Invalid(field.NewPath(name), rand.Text(), rand.Text()))
	}
	return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceSlice").GroupKind(), rand.Text(), list)
}

// refuse has calls fail that begin with a word.
func refuse(call string, with func() error) func(call string) error {
	return func(asked string) error {
		if strings.HasPrefix(asked, call) {
			return with()
		}
		return nil
	}
}

// TestRefusalsStartNoProbing: an admission policy, or a program in its place, refuses the
// slices of a fleet for good. No gate has anything to do with it.
func TestRefusalsStartNoProbing(t *testing.T) {
	for name, test := range map[string]struct {
		refuse  func(call string) error
		dryRuns int
	}{
		"a policy":                  {refuse("create", func() error { return invalidSlice() }), 4},
		"a policy for dry runs too": {refuse("", func() error { return invalidSlice() }), 130},
		"one that names a field":    {refuse("create", func() error { return invalidSlice("spec.devices[" + rand.Text() + "].attributes[x]") }), 12},
		"dry runs fail":             {refuse("dry-run", func() error { return errors.New("down") }), 130},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var nodes []runtime.Object
				for i := range 20 {
					nodes = append(nodes, fakeNode(fmt.Sprintf("n%d", i), true))
				}
				w := newWorld(t, "", nodes...)
				w.Refuse(test.refuse)
				configtest.Replace(t, w.store, template("a", "d", allFields))
				for range 60 {
					time.Sleep(10 * time.Second)
					synctest.Wait()
					require.NotContains(t, strings.Join(w.events(), " "), "FieldsDropped")
				}
				require.LessOrEqual(t, w.takeWrites()["dry-run"], test.dryRuns)
			})
		})
	}
}

// hanging is a client whose dry runs with taints take until it is closed.
type hanging struct {
	resourceclient.ResourceSliceInterface
	closed chan struct{}
}

func (h *hanging) Create(ctx context.Context, slice *resourcev1.ResourceSlice, options metav1.CreateOptions) (*resourcev1.ResourceSlice, error) {
	if len(slice.Spec.Devices[0].Taints) > 0 {
		<-h.closed
	}
	return h.ResourceSliceInterface.Create(ctx, slice, options)
}

// TestHangingProbeHoldsUpNoWorker: nodes whose drivers need the field wait for the answer, and
// nothing is reported of them. Workers go on with all else.
func TestHangingProbeHoldsUpNoWorker(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var nodes []runtime.Object
		for i := range 20 {
			nodes = append(nodes, fakeNode(fmt.Sprintf("n%d", i), true))
		}
		w := newWorld(t, "", nodes...)
		client := &hanging{w.publisher.prober.client, make(chan struct{})}
		w.publisher.prober.client = client
		var mu sync.Mutex
		reported := map[string]bool{}
		w.publisher.reporter.outcomes = func(of string, _ map[string]Outcome) {
			mu.Lock()
			defer mu.Unlock()
			reported[of] = true
		}
		configtest.Replace(t, w.store, template("a", "d", tainted)+template("b", "e", plain)+template("c", "f", shared))
		synctest.Wait()
		require.Equal(t, map[string]int{"create": 40, "dry-run": 1}, w.takeWrites(), "of the other two drivers")
		require.Empty(t, reported)
		require.False(t, w.publisher.Idle())
		close(client.closed)
		synctest.Wait()
		require.Equal(t, map[string]int{"create": 20, "dry-run": 1}, w.takeWrites())
		require.Len(t, reported, 20)
		require.True(t, w.publisher.Idle())
	})
}
