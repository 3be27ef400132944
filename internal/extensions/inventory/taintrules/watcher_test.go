package taintrules

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

var resource = schema.GroupResource{Group: resourcev1.GroupName, Resource: "devicetaintrules"}

// server is an API server with rules in one version, or in none.
type server struct {
	*fake.Clientset
	served    atomic.Pointer[string]
	forbidden atomic.Bool
	lists     atomic.Int32
}

func newServer(version string, objects ...runtime.Object) *server {
	s := &server{Clientset: fake.NewClientset(objects...)}
	s.served.Store(&version)
	s.PrependReactor("list", resource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.lists.Add(1)
		switch {
		case s.forbidden.Load():
			return true, nil, apierrors.NewForbidden(resource, "", nil)
		case action.GetResource().Version != *s.served.Load():
			return true, nil, apierrors.NewNotFound(resource, "")
		}
		return false, nil, nil
	})
	return s
}

func ruleOfV1(name string) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new("d")},
		Taint:          resourcev1.DeviceTaint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute},
	}}
}

// rulesOf is the same rule in each version.
func rulesOf(name string) map[string]runtime.Object {
	meta := metav1.ObjectMeta{Name: name}
	return map[string]runtime.Object{
		"v1": ruleOfV1(name),
		"v1beta2": &resourcev1beta2.DeviceTaintRule{ObjectMeta: meta, Spec: resourcev1beta2.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Driver: new("d")},
			Taint:          resourcev1beta2.DeviceTaint{Key: "k", Effect: resourcev1beta2.DeviceTaintEffectNoExecute},
		}},
		"v1alpha3": &resourcev1alpha3.DeviceTaintRule{ObjectMeta: meta, Spec: resourcev1alpha3.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1alpha3.DeviceTaintSelector{Driver: new("d")},
			Taint:          resourcev1alpha3.DeviceTaint{Key: "k", Effect: resourcev1alpha3.DeviceTaintEffectNoExecute},
		}},
	}
}

// watching runs a Watcher in a bubble of time; logged returns what it has logged.
func watching(t *testing.T, s *server) (w *Watcher, logged func() string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	w = NewWatcher(s)
	runtest.UntilEnd(klog.NewContext(t.Context(), logger), t, w.Run)
	synctest.Wait()
	return w, func() string { return logger.GetSink().(ktesting.Underlier).GetBuffer().String() }
}

func namesIn(w *Watcher) []string {
	rules, _ := w.Rules()
	names := []string{}
	for _, rule := range rules {
		names = append(names, rule.Name)
	}
	return names
}

// TestWatchEachVersion watches rules in the version that the API server has.
func TestWatchEachVersion(t *testing.T) {
	t.Parallel()
	for version, rule := range rulesOf("maintenance") {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, logged := watching(t, newServer(version, rule))
				require.True(t, w.Synced())
				rules, unseen := w.Rules()
				require.Empty(t, unseen)
				require.Len(t, rules, 1)
				require.True(t, rules[0].Selects("d", "any", "any"))
				require.False(t, rules[0].Selects("e", "any", "any"))
				require.Equal(t, "maintenance", rules[0].Taint.Rule)
				require.Equal(t, resourcev1.DeviceTaintEffectNoExecute, rules[0].Taint.Effect)
				require.Empty(t, logged())
			})
		})
	}
}

// TestWatchChanges counts what comes and goes.
func TestWatchChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer("v1")
		w, _ := watching(t, s)
		require.Empty(t, namesIn(w))
		before := w.Changes()
		for _, name := range []string{"b", "a"} {
			_, err := s.ResourceV1().DeviceTaintRules().Create(t.Context(), ruleOfV1(name), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, namesIn(w))
		require.NoError(t, s.ResourceV1().DeviceTaintRules().Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, []string{"b"}, namesIn(w))
		require.Equal(t, before+3, w.Changes())
	})
}

// TestWatchWithoutRules: an API server without the API is no fault. It is asked seldom, and
// the rules are watched once it has them.
func TestWatchWithoutRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer("none", rulesOf("late")["v1beta2"])
		w, logged := watching(t, s)
		require.True(t, w.Synced())
		_, unseen := w.Rules()
		require.Empty(t, unseen, "no rule can exist")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.LessOrEqual(t, s.lists.Load(), int32(3*13))
		require.Equal(t, 1, strings.Count(logged(), "The API server has no DeviceTaintRules"))
		s.served.Store(new("v1beta2"))
		time.Sleep(searchInterval)
		synctest.Wait()
		require.Equal(t, []string{"late"}, namesIn(w))
	})
}

// TestWatchForbidden says once that rules are not seen, and watches them when it may.
func TestWatchForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer("v1", ruleOfV1("r"))
		s.forbidden.Store(true)
		w, logged := watching(t, s)
		require.True(t, w.Synced())
		time.Sleep(time.Hour)
		synctest.Wait()
		_, unseen := w.Rules()
		require.Contains(t, unseen, "DeviceTaintRules are not seen")
		require.Equal(t, 1, strings.Count(logged(), "Cannot read DeviceTaintRules"))
		s.forbidden.Store(false)
		time.Sleep(searchInterval)
		synctest.Wait()
		rules, unseen := w.Rules()
		require.Empty(t, unseen)
		require.Len(t, rules, 1)
	})
}

// TestList lists rules in the version that there is.
func TestList(t *testing.T) {
	t.Parallel()
	for version, rule := range rulesOf("r") {
		rules, unseen, err := List(t.Context(), newServer(version, rule))
		require.NoError(t, err)
		require.Empty(t, unseen)
		require.Len(t, rules, 1)
		require.Equal(t, "d", *rules[0].Spec.DeviceSelector.Driver)
	}
	rules, unseen, err := List(t.Context(), newServer("none"))
	require.NoError(t, err)
	require.Empty(t, unseen)
	require.Empty(t, rules)
	refusing := newServer("v1", ruleOfV1("r"))
	refusing.forbidden.Store(true)
	rules, unseen, err = List(t.Context(), refusing)
	require.NoError(t, err)
	require.Contains(t, unseen, "DeviceTaintRules are not seen")
	require.Empty(t, rules)
}
