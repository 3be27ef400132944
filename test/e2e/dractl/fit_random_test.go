package dractl

import (
	"context"
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
)

var seedsFlag = flag.Int("seeds", 20, "random fleets of TestFitAsTheScheduler, each of the seed after that of the one before, from -schedule-seed on")

// TestFitAsTheScheduler asks of each Pod whether it fits on a random fleet, one fleet after the other, and
// holds the verdict against what the scheduler does.
func TestFitAsTheScheduler(t *testing.T) {
	t.Parallel()
	options := harness.AllFeatures(cluster.Options{
		Disable:   []string{cluster.ControllerManager, cluster.Kwok}, // nothing is to end, or to be taken back
		ExtraArgs: map[string][]string{cluster.Scheduler: {"kube-api-qps=2000", "kube-api-burst=4000"}},
	})
	if harness.KubernetesMinor() < 35 {
		// With it allocateDevice of 1.34 compares the capacity of another device, and ends the scheduler where there is none: it
		// takes the index of a device among those of the request for that in the slice.
		delete(options.FeatureGates, "DRAConsumableCapacity")
	}
	c := cluster.ForTest(t, options)
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	r := &referee{T: t, client: client}
	r.prepare()
	for seed, ran := *seedFlag, 0; ran < *seedsFlag; seed++ {
		s := newDice(seed, 0).scene("random")
		if harness.KubernetesMinor() < 36 && (slices.ContainsFunc(s.slices, hasCounters) || slices.ContainsFunc(s.steps, wantsDistinct) || s.dependsOnOrder()) {
			continue
		}
		ran++
		r.publish(s)
		for _, step := range s.steps {
			r.playFit(s, step, c.Kubeconfig())
		}
		require.False(t, t.Failed(), "-args -schedule-seed %d -seeds 1 has this fleet alone", seed)
		r.lookAgain()
		r.clear()
	}
	t.Logf("%d fleets: %d Pods fit, %d do not", *seedsFlag, r.fit, r.unfit)
	require.Greater(t, r.fit*100, (r.fit+r.unfit)*telling, "too few Pods fit")
	require.Greater(t, r.unfit*100, (r.fit+r.unfit)*telling, "too many Pods fit")
}

// hasCounters reports whether a slice has counter sets, or devices that consume them. In Kubernetes 1.34 both are in one
// slice, and the scheduler of 1.35.4 ends with a nil pointer (checkAvailableCounters) on some.
func hasCounters(slice *resourcev1.ResourceSlice) bool {
	return len(slice.Spec.SharedCounters) > 0 || slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 })
}

// wantsDistinct reports whether a claim has a constraint distinctAttribute. The schedulers before 1.36 compare where values are
// in memory.
func wantsDistinct(step step) bool {
	return slices.ContainsFunc(step.claims, func(claim *resourcev1.ResourceClaim) bool {
		return slices.ContainsFunc(claim.Spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool { return c.DistinctAttribute != nil })
	})
}

// dependsOnOrder reports whether a selector may fail for a device, and a node has several slices. GatherPools has these in random
// order before 1.36, so the scheduler may find enough devices before the one for which the selector fails, or not.
func (s *scene) dependsOnOrder() bool {
	nodes := map[string]int{}
	hasSeveral := slices.ContainsFunc(s.slices, func(slice *resourcev1.ResourceSlice) bool {
		nodes[*slice.Spec.NodeName]++
		return nodes[*slice.Spec.NodeName] > 1
	})
	return hasSeveral && slices.ContainsFunc(s.steps, func(step step) bool {
		return slices.ContainsFunc(step.claims, func(claim *resourcev1.ResourceClaim) bool { return strings.Contains(claim.String(), unguarded) })
	})
}

// playFit has a Pod come with its claims, and compares the verdict with what is done.
func (r *referee) playFit(s *scene, step step, kubeconfig string) {
	r.Helper()
	for _, claim := range step.claims {
		_, err := r.client.ResourceV1().ResourceClaims(namespace).Create(r.Context(), claim, metav1.CreateOptions{})
		require.NoError(r, err)
	}
	pod := step.pod.DeepCopy()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	manifest, err := json.Marshal(pod)
	require.NoError(r, err)
	answer, fits, err := harness.KubectlDRA(r.Context(), kubeconfig, string(manifest), "fit", "-f", "-", "-n", namespace)
	require.NoError(r, err)
	created, err := r.client.CoreV1().Pods(namespace).Create(r.Context(), step.pod, metav1.CreateOptions{})
	require.NoError(r, err)
	decided := r.decided(created.Name, fits)
	if fits != (decided.Spec.NodeName != "") {
		r.Errorf("%s, Pod %s: the scheduler says node %q, %v; the command says %s", s.name, pod.Name, decided.Spec.NodeName, decided.Status.Conditions, answer)
	}
	if fits {
		r.fit++
		return
	}
	r.unfit++
	r.leaveWaiting(step.pod)
}

// clear removes a fleet with its Pods and claims.
func (r *referee) clear() {
	r.Helper()
	r.waiting = nil
	ctx, all, now := r.Context(), metav1.ListOptions{}, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	claims := r.client.ResourceV1().ResourceClaims(namespace)
	for _, remove := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		r.client.CoreV1().Pods(namespace).DeleteCollection, claims.DeleteCollection, r.client.ResourceV1().ResourceSlices().DeleteCollection,
		r.client.ResourceV1().DeviceClasses().DeleteCollection, r.client.CoreV1().Nodes().DeleteCollection,
	} {
		require.NoError(r, remove(ctx, now, all))
	}
	require.EventuallyWithT(r, func(c *assert.CollectT) {
		left, err := claims.List(ctx, all)
		require.NoError(c, err)
		for i := range left.Items { // nobody else removes the finalizers of the scheduler, which may still add some
			_, err := claims.Patch(ctx, left.Items[i].Name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			require.True(c, err == nil || apierrors.IsNotFound(err), err)
		}
		require.Empty(c, left.Items)
	}, patience, patience/10000)
}
