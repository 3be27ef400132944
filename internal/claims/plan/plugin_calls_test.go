package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

var errBroken = errors.New("connection refused")

// process is a Driver that is a process of its own.
type process struct {
	Driver
	answer Answer
	err    error
}

func (p process) Has(string) bool                                       { return true }
func (p process) Registered(string) (bool, error)                       { return true, nil }
func (p process) Unprepare([]*resourcev1.ResourceClaim) (Answer, error) { return p.answer, p.err }

func (p process) Prepare([]*resourcev1.ResourceClaim) (Answer, error) { return p.answer, p.err }

func (p process) Entries(claim *resourcev1.ResourceClaim, _ []*corev1.Pod) (*Entries, error) {
	return &Entries{Claim: claim}, nil
}

// viewOf is the view of a Pod whose claims pass all checks.
func viewOf(set *config.Set, driver Driver) *PodView {
	f := newFixture()
	v := f.view()
	v.Claims.Known, v.Claims.Live.Claims = f.claims, f.claims
	v.Claims.Users = func(*resourcev1.ResourceClaim) []*corev1.Pod { return nil }
	v.Node, v.Set, v.Driver = &corev1.Node{}, set, driver
	v.Standby = func([]*resourcev1.ResourceClaim) bool { return false }
	return v
}

// TestPrepareByProcess: a Pod waits until the processes of all its drivers have answered.
func TestPrepareByProcess(t *testing.T) {
	t.Parallel()
	set := configtest.SetOf(t, "")
	plan := func(set *config.Set, driver Driver) PodPlan {
		next, err := ForPod(t.Context(), viewOf(set, driver), time.Now())
		require.NoError(t, err)
		return next
	}
	asked := plan(set, process{answer: NotAsked})
	require.NotNil(t, asked.Call)
	require.False(t, asked.Call.Unprepare)
	require.Len(t, asked.Call.Claims, 2, "all of the Pod at once")
	require.Nil(t, asked.Patch)
	require.Empty(t, asked.Entries)

	require.Equal(t, PodPlan{}, plan(set, process{answer: Outstanding}))

	answered := plan(set, process{answer: Answered})
	require.Nil(t, answered.Call)
	require.Equal(t, PatchReady, answered.Patch.Operation)
	require.Len(t, answered.Entries, 2)

	failed := plan(set, process{err: &Failure{ReasonDriver, errors.New("busy")}})
	require.Equal(t, "busy", failed.Failure.Error())
	require.Positive(t, failed.Wait)

	simulated := plan(configtest.SetOf(t, claimstest.Configuration("{failWhen: {}}")), process{answer: NotAsked})
	require.Nil(t, simulated.Call, "a driver is not asked where asking it is to fail")
	require.Equal(t, ReasonSimulated, simulated.Failure.Reason)
}

// TestUnprepareByProcess: a Pod that ends is told to be unprepared once its drivers have answered.
func TestUnprepareByProcess(t *testing.T) {
	t.Parallel()
	faithful, minimal := configtest.SetOf(t, claimstest.Configuration("{podStatus: Faithful}")), configtest.SetOf(t, "")
	plan := func(set *config.Set, ready corev1.ConditionStatus, driver Driver) PodPlan {
		v := viewOf(set, driver)
		v.Pod.DeletionTimestamp, v.Pod.Status.Phase = &metav1.Time{}, corev1.PodFailed
		v.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: ready}}
		next, err := ForPod(t.Context(), v, time.Now())
		require.NoError(t, err)
		return next
	}
	for _, test := range []struct {
		name  string
		set   *config.Set
		ready corev1.ConditionStatus
	}{
		{"told", faithful, corev1.ConditionTrue}, {"not told", faithful, corev1.ConditionFalse}, {"ended", minimal, corev1.ConditionTrue},
	} {
		asked := plan(test.set, test.ready, process{answer: NotAsked})
		require.NotNil(t, asked.Call, test.name)
		require.True(t, asked.Call.Unprepare)
		for name, driver := range map[string]process{"not asked": {answer: NotAsked}, "outstanding": {answer: Outstanding}, "failed": {err: errBroken}} {
			waiting := plan(test.set, test.ready, driver)
			require.Nil(t, waiting.Patch, name)
			require.False(t, waiting.Unprepared, name)
		}
		require.Equal(t, unprepareRetryInterval, plan(test.set, test.ready, process{err: errBroken}).Wait)
		answered := plan(test.set, test.ready, process{answer: Answered})
		require.Equal(t, test.name == "told", answered.Patch != nil)
		require.Equal(t, test.name != "told", answered.Unprepared)
	}
}
