package claims

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func named(uids ...types.UID) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, uid := range uids {
		claims = append(claims, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + string(uid), UID: uid}})
	}
	return claims
}

func TestUses(t *testing.T) {
	t.Parallel()
	s := newStates(noRecorder{})
	prepares, unprepares := s.metrics.prepares, s.metrics.unprepares
	p, q, r := &podState{uid: "p"}, &podState{uid: "q"}, &podState{uid: "r"}
	s.markPrepared(p, named("c", "b")...)
	require.InDelta(t, 2, testutil.ToFloat64(prepares), 0)
	s.markPrepared(p, named("c")...)
	s.markPrepared(q, named("c")...)
	require.InDelta(t, 2, testutil.ToFloat64(prepares), 0, "the first Pod counts")
	require.Equal(t, 2, s.countPrepared())
	require.Equal(t, []types.UID{"p", "q"}, s.usersOf("c"))
	require.Equal(t, []types.UID{"p"}, s.usersOf("b"))

	s.markUnprepared(p)
	s.markUnprepared(p)
	s.markUnprepared(r)
	require.InDelta(t, 1, testutil.ToFloat64(unprepares), 0, "of b it was the last Pod")
	require.Equal(t, []types.UID{"q"}, s.usersOf("c"))
	s.markUnprepared(q)
	require.InDelta(t, 2, testutil.ToFloat64(unprepares), 0)
	require.Zero(t, s.countPrepared())
	s.markPrepared(q, named("c")...)
	require.InDelta(t, 3, testutil.ToFloat64(prepares), 0, "the first one again")
	require.EqualValues(t, 5, s.changes.Load())
}

// TestPodsOfOneName: each Pod that had the name is released.
func TestPodsOfOneName(t *testing.T) {
	t.Parallel()
	s := newStates(noRecorder{})
	key := types.NamespacedName{Namespace: "default", Name: "p"}
	first := s.podStateOf(key, "1")
	s.markPrepared(first, named("b")...)
	require.Same(t, first, s.podStateOf(key, "1"))
	require.Equal(t, 1, s.countPrepared())

	s.forgetPod(key, "1")
	require.Same(t, first, s.podStateOf(key, "1"), "it is there still")
	s.forgetPod(key, "2")
	second := s.podStateOf(key, "2")
	require.NotSame(t, first, second)
	require.Zero(t, s.countPrepared())
	s.markPrepared(second, named("c")...)
	s.forgetPod(key, "")
	require.Zero(t, s.countPrepared())
	s.forgetPod(key, "")
	require.NotSame(t, second, s.podStateOf(key, "2"))
}

// TestClaimMadeAnew: of two claims of one name a Pod has one.
func TestClaimMadeAnew(t *testing.T) {
	t.Parallel()
	s := newStates(noRecorder{})
	p, claims := s.podStateOf(types.NamespacedName{Name: "p"}, "p"), named("1", "2")
	claims[1].Name = claims[0].Name
	s.markPrepared(p, claims...)
	require.Equal(t, 1, s.countPrepared())
	require.Empty(t, s.usersOf("1"))
	require.Equal(t, []types.UID{"p"}, s.usersOf("2"))
	require.InDelta(t, 1, testutil.ToFloat64(s.metrics.unprepares), 0)
	s.markUnprepared(p)
	require.Zero(t, s.countPrepared())
	require.InDelta(t, 2, testutil.ToFloat64(s.metrics.unprepares), 0)
}

// TestLatency is from when a Pod is bound, which the informer may tell of before the
// worker looks, and is not known of one that was there at the start.
func TestLatency(t *testing.T) {
	t.Parallel()
	s := newStates(noRecorder{})
	key := types.NamespacedName{Namespace: "default", Name: "p"}
	observed := func() uint64 {
		families, err := s.metrics.all.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "kwok_dra_prepare_duration_seconds" {
				return family.GetMetric()[0].GetHistogram().GetSampleCount()
			}
		}
		return 0
	}
	s.podStateOf(key, "1")
	s.recordReady(key, "1")
	require.Zero(t, observed())
	s.bound.Store(key, boundPod{"2", noon})
	s.recordReady(key, "1")
	require.Zero(t, observed(), "another Pod of that name")
	s.podStateOf(key, "2")
	s.recordReady(key, "2")
	require.EqualValues(t, 1, observed())
	s.bound.Delete(key)
	s.recordReady(key, "2")
	require.EqualValues(t, 1, observed())
}

func TestClaimStates(t *testing.T) {
	t.Parallel()
	s := newStates(noRecorder{})
	state := s.claimStateOf("c")
	require.Same(t, state, s.claimStateOf("c"))
	s.claims.Delete(types.UID("c"))
	require.NotSame(t, state, s.claimStateOf("c"))
}
