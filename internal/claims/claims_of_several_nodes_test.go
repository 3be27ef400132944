package claims

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
)

// fabric is a template of a pool that all nodes share.
func fabric(more string) string {
	return template("d", "  poolName: fabric\n  sharedWith: {allNodes: true}\n"+more)
}

// allocateToAll allocates a device that several nodes can use.
func allocateToAll(claim *resourcev1.ResourceClaim) {
	result := device("d", "gpu-0")
	result.Pool = "fabric"
	allocate(claim, result)
	claim.Status.Allocation.NodeSelector = nil
}

// leader leads replicas that act by lease, and holds the lease of no node.
func leader() *shard.Owner {
	return shard.New(shard.Options{Mode: shard.Lease, Client: fake.NewClientset(), Host: "a", Namespace: "kube-system", Name: "kwok-dra"})
}

// TestAllocationThatIsSeenAfterThePod: another replica acts for the node, and leaves
// the claim of several nodes to the leader, whose watch of claims lags.
func TestAllocationThatIsSeenAfterThePod(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "c")
		claim := allocated("c", pod)
		claim.Status.Allocation = nil
		w := idleWorld(t, fabric(""), newNode("n"), pod, claim)
		w.owner = leader()
		w.start()
		require.True(t, w.owner.Leads())
		require.False(t, w.owner.Acts("n", true))
		w.wrote("")

		w.editClaim("c", allocateToAll)
		w.wrote("prepare c, ready p")
	})
}

// TestRealDriversOfSeveralNodes: only the replica of a node reaches the drivers there, also where Pods on
// several nodes can use their devices.
func TestRealDriversOfSeveralNodes(t *testing.T) {
	for name, test := range map[string]struct{ template, leaderWrites string }{
		"of a real driver": {template("e", ""), ""},
		"of a template":    {fabric(""), "ready p"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				pod := newPod("p", "c")
				claim := allocated("c", pod)
				allocateToAll(claim)
				w := idleWorld(t, test.template, newNode("n"), pod, claim)
				w.owner, w.kubelets = leader(), &flapping{}
				w.start()
				w.wrote(test.leaderWrites)
			})
		})
	}
}

// TestClaimOfADeletedNode: another replica acted for the node. What is left of it is the
// leader's, whose watch of Pods lags.
func TestClaimOfADeletedNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		w := newWorld(t, template("d", ""), newNode("n"), allocated("c", p, q), p)
		w.wrote("prepare c, ready p")
		w.stop()
		w.Remove(p)
		w.owner = leader()
		w.start()
		w.Lags["pods"] = time.Minute
		w.Add(q)
		w.Remove(newNode("n"))
		w.withdrawsAfter(plan.WithdrawDelay)
		w.settled()
	})
}

// TestEntriesOfSeveralNodesStay: what they say of a node does not depend on the order
// in which the index has the Pods.
func TestEntriesOfSeveralNodesStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := newPod("p", "c"), newPod("q", "c")
		q.Spec.NodeName = "m"
		claim := allocated("c", p, q)
		allocateToAll(claim)
		w := newWorld(t, fabric("  claimStatus: {data: {node: '{{ .Node.metadata.name }}', pods: '{{ range .Pods }}{{ .name }} {{ end }}'}}\n"),
			newNode("n"), newNode("m"), claim, p, q)
		synctest.Wait()
		require.JSONEq(t, `{"node": "n", "pods": "p q "}`, w.data("c"))
		w.takeCalls(false)
		for i := range 40 {
			w.editClaim("c", func(claim *resourcev1.ResourceClaim) { claim.Labels = map[string]string{"edit": strconv.Itoa(i)} })
			synctest.Wait()
		}
		w.wrote("")
		require.True(t, w.ready("p") && w.ready("q"))
	})
}

// TestPublishedInASharedPool: the slices of a pool are those of each node that its template selects.
func TestPublishedInASharedPool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inside := newNode("a")
		inside.Labels = map[string]string{"zone": "z1"}
		fabric := newSlice("f", "")
		fabric.Spec.NodeName, fabric.Spec.Pool.Name = nil, "fabric"
		shared := "  poolName: fabric\n  sharedWith: {allNodes: true}\n  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [z1]}]}]}\n"
		w := newWorld(t, template("f", shared)+template("e", ""), inside, newNode("b"), fabric)
		published := func(node, driver string) bool {
			view := &plan.PodView{Node: w.controller.observer.Caches.Nodes.Get(node), Set: w.store.Current()}
			all, _ := w.controller.observer.newDriver(view, nil)
			registered, err := all.Registered(driver)
			require.NoError(t, err)
			return registered
		}
		require.True(t, published("a", "f"))
		require.False(t, published("b", "f"))
		require.False(t, published("a", "e"))
	})
}
