package claims

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestUses(t *testing.T) {
	t.Parallel()
	s := newStates()
	require.True(t, s.use("c", "p"), "the first Pod")
	require.False(t, s.use("c", "q"))
	require.True(t, s.use("b", "p"))
	require.Equal(t, 2, s.prepared())
	require.True(t, s.uses("c", "p"))
	require.False(t, s.uses("b", "q"))

	require.False(t, s.unuse("c", "p"))
	require.False(t, s.unuse("c", "p"), "once is enough")
	require.False(t, s.unuse("c", "r"))
	require.True(t, s.unuse("c", "q"), "the last Pod")
	require.False(t, s.unuse("c", "q"))
	require.Equal(t, 1, s.prepared())
	require.True(t, s.use("c", "q"), "the first one again")
}

func TestPodsOfOneName(t *testing.T) {
	t.Parallel()
	s := newStates()
	key := types.NamespacedName{Namespace: "default", Name: "p"}
	first, former := s.pod(key, "1")
	require.Nil(t, former)
	first.claims = []types.UID{"c"}
	again, former := s.pod(key, "1")
	require.Same(t, first, again)
	require.Nil(t, former)

	s.bound(key, "2", noon) // the informer may tell of it before the worker looks
	current, former := s.pod(key, "2")
	require.Same(t, first, former, "so that its claims can be released")
	require.Equal(t, noon, s.boundAt(current))
	_, former = s.pod(key, "2")
	require.Nil(t, former, "once")

	s.bound(key, "3", noon)
	forgotten := s.forgetPod(key)
	require.EqualValues(t, "3", forgotten.uid)
	require.Same(t, current, forgotten.former)
	require.Nil(t, s.forgetPod(key))
}

// TestReleaseOfSeveral: each Pod that had the name is released.
func TestReleaseOfSeveral(t *testing.T) {
	t.Parallel()
	s := newStates()
	l := &ledger{states: s, metrics: newMetrics(s.prepared)}
	first := &podState{uid: "1", claims: []types.UID{"b"}}
	second := &podState{uid: "2", claims: []types.UID{"c"}, former: first}
	s.use("b", "1")
	s.use("c", "2")
	l.markUnprepared(second)
	require.Zero(t, s.prepared())
	l.markUnprepared(nil)
}

func TestClaimStates(t *testing.T) {
	t.Parallel()
	s := newStates()
	state := s.claim("c")
	require.Same(t, state, s.claim("c"))
	s.forgetClaim("c")
	require.NotSame(t, state, s.claim("c"))
}
