package claims

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// twoInstallations is the Controller of an installation "a" that acts for the node n, which has not been started, with the Pod
// q on the node m of an installation "b".
func twoInstallations(t *testing.T, documents string, claim *resourcev1.ResourceClaim, p, q *corev1.Pod) *world {
	t.Helper()
	ours, theirs := newNode("n"), realNode("m")
	ours.Labels, theirs.Labels = map[string]string{"zone": "ours"}, map[string]string{"zone": "theirs"}
	ours.Annotations["zone"] = "ours"
	w := idleWorld(t, documents, ours, theirs, p, q, claim)
	w.owner = ownerOf("a")
	return w
}

func ownerOf(id installation.ID) *shard.Owner {
	return shard.New(shard.Options{Mode: shard.None, Installation: id})
}

// startTheirs starts the Controller of installation "b".
func (w *world) startTheirs() {
	w.t.Helper()
	theirs := &world{server: w.server, t: w.t, store: w.store, events: &eventLog{}, owner: ownerOf("b")}
	theirs.managed = lifecycle.ManagedNodes{Labels: "zone=theirs"}
	theirs.start()
}

// podOn is a Pod that uses the claim c.
func podOn(name, node string) *corev1.Pod {
	pod := newPod(name, "c")
	pod.Spec.NodeName = node
	return pod
}

// TestClaimOfAnotherInstallation: its entries stay as long as its Pod uses it, however the nodes are selected here.
func TestClaimOfAnotherInstallation(t *testing.T) {
	recorded := func(slice *resourcev1.ResourceSlice) {
		slice.Annotations = map[string]string{v1alpha1.InstallationAnnotation: "b"}
	}
	ofNode := func(w *world) { apitest.Edit(w.Server, "", "d-m", recorded) }
	ofPool := func(w *world) {
		slice := newSlice("d", "fabric")
		slice.Spec.NodeName, slice.Spec.AllNodes = nil, new(true)
		recorded(slice)
		w.Add(slice)
	}
	for name, test := range map[string]struct {
		managed lifecycle.ManagedNodes
		// toAll has the claim's device be one for all nodes.
		toAll  bool
		record func(w *world)
	}{
		"by the default annotation": {lifecycle.ManagedNodes{}, false, ofNode},
		"by another annotation":     {lifecycle.ManagedNodes{Annotations: "zone=ours"}, false, ofNode},
		"of several nodes":          {lifecycle.ManagedNodes{}, true, ofNode},
		"of another's pool":         {lifecycle.ManagedNodes{}, true, ofPool},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				q := podOn("q", "m")
				claim := ofOne("c", q)
				claim.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] = "m"
				if test.toAll {
					allocateToAll(claim)
				}
				w := twoInstallations(t, fabric(""), claim, newPod("p"), q)
				w.managed = test.managed
				w.startTheirs()
				w.wrote("prepare c, ready q")
				test.record(w)
				w.start()
				time.Sleep(time.Hour)
				w.wrote("")
				require.Len(t, w.shown("c"), 1)
				w.Remove(q)
				time.Sleep(2 * plan.OthersDelay)
				require.NotEmpty(t, w.takeCalls(false))
				require.Empty(t, w.shown("c"))
			})
		})
	}
}

// TestInstallationsThatShareAClaim: its entries name the Pods of both, and only the one of the oldest Pod renews them.
func TestInstallationsThatShareAClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := podOn("p", "n"), podOn("q", "m")
		claim := allocated("c", p, q)
		allocateToAll(claim)
		w := twoInstallations(t, fabric(namePods), claim, p, q)
		w.managed = lifecycle.ManagedNodes{Labels: "zone=ours"}
		w.start()
		w.wrote("prepare c, ready p")
		require.JSONEq(t, `{"pods":"p q "}`, w.data("c"))
		w.startTheirs()
		w.wrote("ready q")
		w.settled()

		w.editClaim("c", func(claim *resourcev1.ResourceClaim) { claim.Status.Devices[0].Data.Raw = []byte(`{"pods":"nobody "}`) })
		w.wrote("prepare c")
		require.JSONEq(t, `{"pods":"p q "}`, w.data("c"))
		w.Remove(p)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(w.takeCalls(false)), 3, "one may see the end of the Pod after the other one's write")
		require.JSONEq(t, `{"pods":"q "}`, w.data("c"))
		w.settled()
	})
}
