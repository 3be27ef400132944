package selecting_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/devices"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/worldtest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// lacked are the lines about all that a user of one namespace cannot see.
func lacked(resources ...string) []string {
	var lines []string
	for _, resource := range resources {
		lines = append(lines, fmt.Sprintf("cannot list %s: ask for the ClusterRole dra-viewer, or for the right to list them\n", resource))
	}
	return lines
}

// TestNamespaceUser answers with what the claims of a namespace say.
func TestNamespaceUser(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t, worldtest.Devices())
	w.Forbid("*")
	a := w.Run(devices.New, "-o", `jsonpath={range .items[*]}{.node}/{.pool}/{.device} {.state}{"\n"}{end}`)
	require.NoError(t, a.Err)
	require.Equal(t, "/rail-1/port prepared\na/a/gpu-0 prepared\na/a/gpu-1 failing\nb/b/gpu-0-half-0 prepared\nd/d/gpu-9 prepared\n", a.Out)
	for _, line := range lacked("resourceslices", "resourceclaims in all namespaces", "pods in all namespaces", "events in all namespaces", "nodes", "devicetaintrules") {
		require.Contains(t, a.ErrOut, line)
	}
	w.Client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
	})
	require.EqualError(t, w.Run(devices.New).Err, strings.TrimSpace(lacked("resourceslices")[0]))
}

// TestAllocationTimes: without a time in the claim it is the time at which its first Pod was scheduled.
func TestAllocationTimes(t *testing.T) {
	t.Parallel()
	claim := worldtest.Claim("c", "a", []string{"gpu-0"}, "first", "second")
	claim.Status.Allocation.AllocationTimestamp = nil
	podAt := func(name string, second int) *corev1.Pod {
		return worldtest.Pod(name, "a", "c", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: worldtest.At(second)})
	}
	w := worldtest.New(t, claim, podAt("second", 60), podAt("first", 3))
	c, err := selecting.ReadCluster(t.Context(), reading.NewReaderOf(w.Client), worldtest.Namespace, false)
	require.NoError(t, err)
	require.Equal(t, map[string]time.Time{"ml/c": worldtest.At(3).Time}, c.AllocationTimes())
}

// TestFlags says what is wrong with a flag.
func TestFlags(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"--selector=a==b==c": `parse -l "a==b==c": `,
		"--state=busy":       `parse --state "busy": it is one of free, blocked, allocated, prepared, failing, tainted, gone, in-use, unhealthy`,
		"--attribute==x":     `parse --attribute "=x": write NAME=VALUE`,
		"--attribute=x!":     `parse --attribute "x!": write NAME=VALUE`,
	} {
		require.ErrorContains(t, worldtest.New(t).Run(devices.New, argument).Err, want)
	}
}

func TestMatchesPattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, pattern string
		want          bool
	}{
		{"H100", "H100", true},
		{"H100", "h100", false},
		{"NVIDIA H100 80GB", "*H100*", true},
		{"NVIDIA H200 80GB", "*H100*", false},
		{"gpu-12", "gpu-*2", true},
		{"gpu-2", "gpu-2*2", false},
		{"", "*", true},
	} {
		require.Equal(t, test.want, selecting.MatchesPattern(test.text, test.pattern), "%s %s", test.text, test.pattern)
	}
}

// TestWatch shows the answer again when a watch reports a change, also to the user of a namespace.
func TestWatch(t *testing.T) {
	t.Parallel()
	for user, forbidden := range map[string][]string{"admin": nil, "user of a namespace": {"*"}} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := worldtest.New(t, worldtest.Devices())
				w.Forbid(forbidden...)
				shows, told, end := w.Watch(devices.New, "-o", "name")
				wait := func() { time.Sleep(3 * follow.Interval); synctest.Wait() }
				wait()
				require.Contains(t, shows.Take(), "gpu.example.com/d/gpu-9\n")
				require.NoError(t, w.Client.ResourceV1().ResourceClaims(worldtest.Namespace).Delete(t.Context(), "lost", metav1.DeleteOptions{}))
				wait()
				require.Regexp(t, "^fabric.example.com/rail-1/port\n(gpu.example.com/[abc]/[^\n]*\n)+$", shows.Take())
				require.Equal(t, len(forbidden) > 0, told.Take() != "")
				require.NoError(t, end())
			})
		})
	}
}
