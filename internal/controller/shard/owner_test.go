package shard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// replica is an owner that takes part, and what it was told.
type replica struct {
	*Owner
	stop func()

	mu    sync.Mutex
	taken []string
	led   int
}

// timesLed is how often it began or ended to lead.
func (r *replica) timesLed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.led
}

func start(t *testing.T, client kubernetes.Interface, mode Mode, host string) *replica {
	t.Helper()
	owner := New(Options{Mode: mode, Client: client, Host: host, Namespace: "kube-system", Name: "kwok-dra"})
	r := &replica{Owner: owner}
	owner.OnChange(func(node string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken = append(r.taken, node)
	}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.led++
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		owner.Run(ctx)
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(r.stop)
	return r
}

// told are the nodes that the replica has begun to act for since it was last
// asked.
func (r *replica) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.taken
	r.taken = nil
	slices.Sort(told)
	return told
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func lease(node, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
}

// TestNone has the one replica act for everything, as does no owner.
func TestNone(t *testing.T) {
	t.Parallel()
	owner := New(Options{Mode: None})
	for _, o := range []*Owner{owner, nil} {
		require.True(t, o.Leads())
		require.True(t, o.Acts("a", true))
		require.True(t, o.Acts("a", false))
		o.OnChange(func(string) {}, func() {})
	}
	require.Empty(t, owner.Synced())
}

// TestLeader has one replica act at a time: the other when the first is silent,
// or at once when it ends in order.
func TestLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		one := start(t, client, Leader, "one")
		time.Sleep(time.Second)
		two := start(t, client, Leader, "two")
		time.Sleep(time.Minute)
		require.True(t, one.Leads())
		require.True(t, one.Acts("a", true))
		require.True(t, one.Acts("a", false))
		require.False(t, two.Leads())
		require.False(t, two.Acts("a", true))
		require.False(t, two.Acts("a", false))

		one.stop()
		require.False(t, one.Leads())
		time.Sleep(2 * retryPeriod)
		require.True(t, two.Leads())
		require.Equal(t, 1, one.timesLed())
		require.Equal(t, 1, two.timesLed())
	})
}

// TestLeaderThatCannotRenew stops leading before another could begin, and stands
// again.
func TestLeaderThatCannotRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var cut atomic.Bool
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return cut.Load(), nil, errors.New("connection refused")
		})
		one := start(t, client, Leader, "one")
		time.Sleep(time.Second)
		require.True(t, one.Leads())
		cut.Store(true)
		time.Sleep(leaseDuration - time.Second)
		require.False(t, one.Leads())
		cut.Store(false)
		time.Sleep(leaseDuration + 2*retryPeriod)
		require.True(t, one.Leads())
		require.Equal(t, 2, one.timesLed())
	})
}

// TestLease has each replica act for the nodes whose lease the kwok beside it
// holds, and the leader for what is left of others.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(lease("a", "one_1"), lease("b", "two_1"), lease("c", "one-more_1"))
		one := start(t, client, Lease, "one")
		require.Len(t, one.Synced(), 1)
		time.Sleep(time.Second)
		two := start(t, client, Lease, "two")
		time.Sleep(time.Second)
		require.True(t, one.Leads())
		require.True(t, one.Acts("a", false))
		require.False(t, two.Acts("a", false))
		require.Equal(t, []string{"a"}, one.told())
		require.Equal(t, []string{"b"}, two.told())
		require.True(t, one.Acts("a", true))
		require.False(t, one.Acts("b", true), "although it leads")
		require.False(t, one.Acts("c", true), "of a Pod whose name only begins alike")

		for _, change := range []*coordinationv1.Lease{lease("a", "two_1"), lease("b", "two_2")} {
			_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(t.Context(), change, metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		time.Sleep(2 * listPeriod)
		require.False(t, one.Acts("a", true))
		require.True(t, two.Acts("a", true))
		require.True(t, two.Acts("b", true), "also when its kwok has been started again")
		require.Equal(t, []string{"a"}, two.told(), "and only of what is new")

		require.NoError(t, client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		time.Sleep(2 * listPeriod)
		require.False(t, two.Acts("a", true))
	})
}

// TestLeasesThatCannotBeListed changes nothing until a list succeeds again, and
// waits for the first.
func TestLeasesThatCannotBeListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(lease("a", "one_1"))
		var refuse atomic.Bool
		refuse.Store(true)
		var lists atomic.Int32
		client.PrependReactor("list", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			lists.Add(1)
			options := action.(clienttesting.ListActionImpl).ListOptions
			require.Equal(t, metav1.ListOptions{ResourceVersion: "0"}, options, "from the API server's cache")
			return refuse.Load(), nil, errors.New("too many requests")
		})
		one := start(t, client, Lease, "one")
		time.Sleep(time.Minute)
		require.False(t, cache.IsDone(one.Synced()[0]))
		require.False(t, one.Acts("a", true))
		require.InDelta(t, 20, lists.Load(), 10, "after 2 to 4 s each")

		refuse.Store(false)
		time.Sleep(2 * listPeriod)
		require.True(t, cache.IsDone(one.Synced()[0]))
		require.Equal(t, []string{"a"}, one.told())

		refuse.Store(true)
		require.NoError(t, client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(t.Context(), "a", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		require.True(t, one.Acts("a", true), "what was last listed remains in force")
		refuse.Store(false)
		time.Sleep(2 * listPeriod)
		require.False(t, one.Acts("a", true))
	})
}

func TestParseMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{None, Leader, Lease} {
		parsed, err := ParseMode(string(mode))
		require.NoError(t, err)
		require.Equal(t, mode, parsed)
	}
	_, err := ParseMode("Lease")
	require.EqualError(t, err, "must be none, leader or lease")
}

// TestRecorder has only the leader tell.
func TestRecorder(t *testing.T) {
	t.Parallel()
	for mode, want := range map[Mode]int{None: 1, Leader: 0} {
		to := record.NewFakeRecorder(10)
		owner := New(Options{Mode: mode, Client: fake.NewClientset()})
		recorder := owner.Recorder(to)
		recorder.Event(node("a"), corev1.EventTypeWarning, "Reason", "message")
		require.Len(t, to.Events, want)
	}
}
