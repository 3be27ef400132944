package claims

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// inventory tells of the allocated devices in words.
func (w *world) inventory() []string {
	synctest.Wait()
	var all []string
	for _, a := range w.source.Allocations() {
		words := []string{a.Claim.Name, "has", a.Driver + "/" + a.Pool + "/" + a.Device}
		if a.Claim.ShareID != "" {
			words = append(words, "share", a.Claim.ShareID)
		}
		if a.Claim.AdminAccess {
			words = append(words, "as admin")
		}
		if a.Claim.Failure != "" {
			words = append(words, "failing: "+a.Claim.Failure+",")
		}
		if a.Claim.Prepared {
			words = append(words, "prepared")
		}
		all = append(all, strings.Join(append(words, a.Claim.Pods...), " "))
	}
	slices.Sort(all)
	return all
}

// TestInventory: a device is prepared while an entry of ours shows it.
func TestInventory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		idle := allocated("idle")
		idle.Status.Allocation = nil
		w := newWorld(t, template("d", "")+configuration("{prepareWhen: {matchLabels: {go: now}}}"), newNode("n"), p, q, allocated("c", q, p), idle)
		require.Equal(t, []string{"c has d/n/gpu-0 p q"}, w.inventory())
		require.Equal(t, "default", w.source.Allocations()[0].Claim.Namespace)
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"go": "now"} })
		require.Equal(t, []string{"c has d/n/gpu-0 prepared p q"}, w.inventory())

		w.Remove(newPod("p"))
		w.unreserve("c", "uid-of-p")
		time.Sleep(plan.WithdrawDelay / 2)
		require.Equal(t, []string{"c has d/n/gpu-0 prepared q"}, w.inventory(), "the other still waits for it, so what is there stays")
		w.deallocate("c")
		require.Empty(t, w.inventory())
	})
}

// TestInventoryOfAFailure: it is told until the Pod is prepared, or gone.
func TestInventoryOfAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "d")
		w := newWorld(t, template("d", "")+configuration("{failWhen: {matchLabels: {fail: now}}}"), newNode("n"), allocated("c", p), allocated("d", q))
		for _, pod := range []*corev1.Pod{p, q} {
			pod.Labels = map[string]string{"fail": "now"}
			w.Add(pod)
		}
		failing := w.inventory()
		require.Len(t, failing, 2)
		require.Regexp(t, "^c has d/n/gpu-0 failing: .+, p$", failing[0])
		require.Equal(t, map[string]int{preparing: 0, plan.ReasonSimulated: 2}, w.controller.observer.states.waitingPods())
		waiting := w.controller.Waiting()
		require.Len(t, waiting, 2)
		require.Contains(t, []string{"p", "q"}, waiting[0].Pod.Name)
		require.Contains(t, waiting[0].Failure, "failWhen selects the Pod")
		require.True(t, waiting[0].Retry.After(time.Now()))
		before := w.source.Changes()
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = nil })
		w.Remove(q)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"c has d/n/gpu-0 prepared p", "d has d/n/gpu-0 q"}, w.inventory())
		require.Greater(t, w.source.Changes(), before)
		require.Equal(t, map[string]int{preparing: 0}, w.controller.observer.states.waitingPods())
		require.Empty(t, w.controller.Waiting())
	})
}

// TestWaitingPods counts a Pod on a fake node until it is prepared or ends.
func TestWaitingPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q, other := newPod("p", "c"), newPod("q", "d"), newPod("other", "e")
		bindTo("real")(other)
		w := newWorld(t, template("d", "")+configuration("{prepareWhen: {matchLabels: {go: now}}}"), newNode("n"), realNode("real"),
			p, q, other, allocated("c", p), allocated("d", q), allocated("e", other))
		waiting := func() int {
			synctest.Wait()
			return w.controller.observer.states.waitingPods()[preparing]
		}
		require.Equal(t, 2, waiting())
		w.stop()
		w.start()
		require.Equal(t, 2, waiting())
		w.editPod("p", func(pod *corev1.Pod) { pod.Labels = map[string]string{"go": "now"} })
		require.Equal(t, 1, waiting())
		w.editPod("q", setPhase(corev1.PodFailed))
		require.Zero(t, waiting())
		require.NoError(t, testutil.GatherAndCompare(w.controller.observer.states.metrics.all, strings.NewReader(`
# HELP kwok_dra_waiting_pods Pods on fake nodes whose claims are not prepared yet, by the reason of the last failure, or preparing where nothing has failed.
# TYPE kwok_dra_waiting_pods gauge
kwok_dra_waiting_pods{reason="preparing"} 0
`), "kwok_dra_waiting_pods"))
	})
}

// TestInventoryWhereNothingIsWritten: then it is prepared while a Pod uses it.
func TestInventoryWhereNothingIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		w := newWorld(t, template("d", "  claimStatus: {mode: None}\n"), newNode("n"), pod, allocated("c", pod))
		require.Equal(t, []string{"c has d/n/gpu-0 prepared p"}, w.inventory())
		w.stop()
		w.start()
		require.Equal(t, []string{"c has d/n/gpu-0 prepared p"}, w.inventory())
		w.editPod("p", setPhase(corev1.PodSucceeded))
		require.Equal(t, []string{"c has d/n/gpu-0 p"}, w.inventory())
	})
}

// TestInventoryOfEntriesOfOthers: they prepare nothing, nor do binding conditions.
func TestInventoryOfEntriesOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := binding(t, "")
		w.wrote("bind c")
		require.Equal(t, []string{"c has d/n/gpu-0 p"}, w.inventory())
		w.editPod("p", bindTo("real"))
		require.Equal(t, []string{"c has d/n/gpu-0 p"}, w.inventory())
	})
}

func TestInventoryOfShares(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		claim := allocated("c", pod)
		first, second, watched := device("d", "gpu-0"), device("d", "gpu-0"), device("other", "gpu-1")
		first.ShareID, second.ShareID, watched.AdminAccess = new(types.UID("1")), new(types.UID("2")), new(true)
		allocate(claim, first, second, watched)
		w := newWorld(t, template("d", ""), realNode("n"), pod, claim)
		require.Equal(t, []string{"c has d/n/gpu-0 share 1 p", "c has d/n/gpu-0 share 2 p", "c has other/n/gpu-1 as admin p"}, w.inventory())
	})
}

// TestInventoryOfAPodGroup: the claim tells the group only.
func TestInventoryOfAPodGroup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		member, stranger, ended := newPod("member", "c"), newPod("stranger", "c"), newPod("ended", "c")
		ended.Status.Phase = corev1.PodFailed
		for _, pod := range []*corev1.Pod{member, ended} {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
		}
		claim := allocated("c", newPod("direct"))
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g"})
		w := newWorld(t, template("d", "")+configuration("{prepareWhen: {matchLabels: {go: now}}}"), newNode("n"), member, stranger, ended, claim)
		require.Equal(t, []string{"c has d/n/gpu-0 direct member"}, w.inventory())
	})
}

// TestInventoryChanges: what changes an inventory is counted, so that it need
// not be taken to find out.
func TestInventoryChanges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, template("d", "  claimStatus: {mode: None}\n"), newNode("n"), newPod("without"))
		var before uint64
		changed := func(what string, change func()) {
			t.Helper()
			change()
			synctest.Wait()
			require.Greater(t, w.source.Changes(), before, what)
			before = w.source.Changes()
		}
		pod := newPod("p", "c")
		changed("a claim comes", func() { w.Add(allocated("c", pod)) })
		changed("a Pod comes, and is prepared", func() { w.Add(pod) })
		seen := w.source.Allocations()
		changed("a Pod ends", func() { w.editPod("p", setPhase(corev1.PodSucceeded)) })
		require.NotEqual(t, seen, w.source.Allocations())
		changed("a claim changes", func() { w.unreserve("c", "uid-of-p") })
		changed("a Pod goes", func() { w.Remove(newPod("p")) })
		changed("a claim goes", func() { w.Remove(allocated("c")) })
		w.editPod("without", setPhase(corev1.PodRunning))
		synctest.Wait()
		require.Equal(t, before, w.source.Changes(), "a Pod without claims changes nothing")
		require.Equal(t, []inventory.Allocation(nil), w.source.Allocations())
	})
}

// TestInventoryCoverage: the cache has no slices of real drivers, nor of other nodes' drivers, so
// that it lacks a device of theirs says nothing.
func TestInventoryCoverage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		of := func(name, driver, node string) *resourcev1.ResourceClaim {
			claim := allocated(name)
			claim.Status.Allocation.Devices.Results[0].Driver = driver
			claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{node}
			return claim
		}
		p := newPod("p", "prepared")
		w := newWorld(t, template("d", ""), newNode("n"), p, allocated("prepared", p),
			of("fake", "d", "n"), of("real-driver", "real", "n"), of("real-node", "d", "elsewhere"))
		covered := func() []string {
			synctest.Wait()
			names := []string{}
			for _, a := range w.source.Allocations() {
				if a.Covered {
					names = append(names, a.Claim.Name)
				}
			}
			slices.Sort(names)
			return names
		}
		require.Equal(t, []string{"fake", "prepared"}, covered())
		w.Remove(newNode("n"))
		require.Equal(t, []string{"prepared"}, covered(), "kwok-dra has written its entry")
	})
}
