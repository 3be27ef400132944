package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
)

// partitioned is a Controller that acts for the node n by its label, with the Pod p
// on it, and a node m that it never lists. The claim c of p is prepared.
func partitioned(t *testing.T, claim *resourcev1.ResourceClaim) *world {
	t.Helper()
	ours := newNode("n")
	ours.Labels = map[string]string{"zone": "ours"}
	w := idleWorld(t, fabric(""), ours, newNode("m"), newPod("p", "c"), claim)
	w.managed = lifecycle.ManagedNodes{Labels: "zone=ours"}
	w.start()
	w.wrote("prepare c, ready p")
	return w
}

// elsewhere is the Pod q on the node m, ready to start by another kwok-dra.
func elsewhere() *corev1.Pod {
	pod := newPod("q", "c")
	pod.Spec.NodeName = "m"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	return pod
}

func ofAll() *resourcev1.ResourceClaim {
	claim := allocated("c", newPod("p"))
	allocateToAll(claim)
	return claim
}

// ofOne is a claim of a Pod on the node n.
func ofOne(name string, pod *corev1.Pod) *resourcev1.ResourceClaim {
	claim := allocated(name, pod)
	result := device("d", "gpu-0")
	result.Pool = "fabric"
	allocate(claim, result)
	return claim
}

// moveElsewhere has the claim c be allocated on the node m, and the Pod q use it.
func (w *world) moveElsewhere() {
	w.Add(elsewhere())
	w.editClaim("c", func(claim *resourcev1.ResourceClaim) {
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{consumer(elsewhere())}
		claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "m"
	})
}

// TestClaimOfSeveralNodesInANarrowSelection: its entries go with the last consumer,
// wherever that is.
func TestClaimOfSeveralNodesInANarrowSelection(t *testing.T) {
	for name, test := range map[string]struct {
		others bool
		// first and last are the Pods that end.
		first, last string
	}{
		"alone":                  {false, "", "p"},
		"another's is the last":  {true, "p", "q"},
		"another's is the first": {true, "q", "p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := partitioned(t, ofAll())
				if test.others {
					w.reserve("c", elsewhere())
					w.Add(elsewhere())
					w.Remove(newPod(test.first))
					w.settled()
					require.Len(t, w.shown("c"), 1)
				}
				w.Remove(newPod(test.last))
				w.withdrawsAfter(plan.WithdrawDelay)
				w.settled()
			})
		})
	}
}

// TestConsumerThatTheCacheDoesNotHave: a Pod on another's node may be seen late.
func TestConsumerThatTheCacheDoesNotHave(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := partitioned(t, ofAll())
		w.Lags["pods"] = time.Hour
		w.Add(elsewhere())
		w.reserve("c", elsewhere())
		w.unreserve("c", "uid-of-p")
		w.settled()
		require.Len(t, w.shown("c"), 1)
	})
}

// TestClaimOfANodeThatLeavesTheSelection: its entries go, and those of someone
// else's node stay, even if the claim was on one of ours before.
func TestClaimOfANodeThatLeavesTheSelection(t *testing.T) {
	leave := func(w *world) { w.editNode("n", func(node *corev1.Node) { node.Labels = nil }) }
	for name, test := range map[string]struct {
		then func(w *world)
		want string
	}{
		"left": {leave, "withdraw c"},
		"left after a restart": {func(w *world) {
			w.stop()
			w.start()
			leave(w)
		}, "withdraw c"},
		"moved": {(*world).moveElsewhere, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := partitioned(t, ofOne("c", newPod("p")))
				test.then(w)
				time.Sleep(time.Minute)
				w.wrote(test.want)
				w.settled()
			})
		})
	}
}

// TestClaimOfANodeThatIsNotKnown: another kwok-dra's claim is left to it, as long as a Pod uses the
// claim, and some time longer. One whose node left before this replica saw it looks the same.
func TestClaimOfANodeThatIsNotKnown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := partitioned(t, ofOne("c", newPod("p")))
		w.stop()
		w.moveElsewhere()
		w.start()
		w.settled()
		w.Remove(newPod("q"))
		w.withdrawsAfter(plan.OthersDelay)
		w.settled()
	})
}

// TestClaimOfASingleNode: no other kwok-dra acts for it, so its claims are withdrawn also
// where it has gone before this replica saw them.
func TestClaimOfASingleNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPod("p", "c")
		w := idleWorld(t, template("d", ""), newNode("n"), p, allocated("c", p))
		w.managed = lifecycle.ManagedNodes{Single: "n"}
		w.start()
		w.wrote("prepare c, ready p")
		w.stop()
		w.Remove(newNode("n"))
		w.start()
		w.withdrawsAfter(plan.WithdrawDelay)
		w.settled()
	})
}

// TestClaimWhoseNodeLeavesBeforeItIsSeen: it is prepared by what the API server says, whose
// answer is lost, and the cache shows it only when the node has left.
func TestClaimWhoseNodeLeavesBeforeItIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "late")
		w := partitioned(t, ofAll())
		w.Lags["resourceclaims"] = time.Minute
		w.loseAnswer("prepare late")
		w.Add(ofOne("late", q))
		w.Add(q)
		time.Sleep(time.Second)
		w.wrote("prepare late, ready q")
		w.editNode("n", func(node *corev1.Node) { node.Labels = nil })
		w.Remove(q)
		w.Remove(p)
		time.Sleep(10 * time.Minute)
		w.counted(map[string]int{"withdraw c": 1, "withdraw late": 1})
		w.settled()
	})
}
