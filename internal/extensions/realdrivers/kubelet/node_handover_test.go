package kubelet

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/claiminfo"
	"github.com/kwok-dra/kwok-dra/internal/observe"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// onNode is a Pod on the node n, with a claim.
func onNode(name string) *corev1.Pod {
	pod := claimstest.NewPod(name, "c"+name[1:])
	pod.Spec.NodeName = "n"
	return pod
}

// startReplica starts the Kubelets of one of several replicas that share a directory.
func (w *world) startReplica(host string, mode shard.Mode) *Kubelets {
	w.t.Helper()
	managed := &lifecycle.ManagedNodes{}
	require.NoError(w.t, managed.Complete())
	caches := observe.New(w.Server, managed)
	owner := shard.New(shard.Options{Mode: mode, Client: w.Server, Host: host, Namespace: "default", Name: "l"})
	k := New(Options{Client: w.Server, Config: w.store, Caches: caches, Owner: owner, Directory: w.directory, WipeDelay: WipeDelay})
	ctx, cancel := context.WithCancel(runtest.QuietContext(w.t))
	var running sync.WaitGroup
	running.Go(func() { caches.Run(ctx) })
	running.Go(func() { owner.Run(ctx) })
	running.Go(func() { k.Run(ctx, 2) })
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return k
}

// prepare prepares a claim of a real driver for a Pod on the node n.
func (w *world) prepare(k *Kubelets, pod, claim string) {
	w.t.Helper()
	n := k.runningNode("n")
	require.NotNil(w.t, n)
	made := claimstest.Allocated(claim)
	claimstest.Allocate(made, claimstest.Device("real.example.com", "x"))
	joined := []claiminfo.Claim{{ResourceClaim: made, Drivers: map[string]claiminfo.DriverState{"real.example.com": {}}}}
	_, err := n.claims.Join(claimstest.NewPod(pod).UID, joined)
	require.NoError(w.t, err)
	require.NoError(w.t, n.claims.SetPrepared(joined))
}

// requirePrepared checks what the checkpoint of the node n has.
func (w *world) requirePrepared(pods ...string) {
	w.t.Helper()
	again, err := claiminfo.Open(filepath.Join(w.directory, "n", claiminfo.File))
	require.NoError(w.t, err)
	require.Len(w.t, again.Pods(), len(pods))
	for _, pod := range pods {
		require.True(w.t, again.Pods().Has(claimstest.NewPod(pod).UID), pod)
	}
}

// TestHandOverAndBack: a node goes from one replica to another and back. What the other has prepared
// meanwhile is unprepared by the first, and its checkpoint is not overwritten.
func TestHandOverAndBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), onNode("p1"), onNode("p2"), onNode("p3"))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n"}}
		w.Add(lease)
		hold := func(holder string) {
			apitest.Edit(w.Server, "kube-node-lease", "n", func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &holder })
			time.Sleep(30 * time.Second)
			synctest.Wait()
		}
		a, b := w.startReplica("a", shard.Lease), w.startReplica("b", shard.Lease)
		hold("a_1")
		w.prepare(a, "p1", "c1")
		hold("b_1")
		require.Nil(t, a.runningNode("n"))
		require.True(t, b.runningNode("n").claims.Pods().Has(claimstest.NewPod("p1").UID), "b reads the checkpoint")
		w.prepare(b, "p2", "c2")

		hold("a_1")
		require.Nil(t, b.runningNode("n"))
		answer, err := a.Driver(onNode("p2"), claimstest.NewNode("n"), func(string) bool { return false }).Unprepare(nil)
		require.NoError(t, err)
		require.Equal(t, plan.NotAsked, answer)
		w.prepare(a, "p3", "c3")
		w.requirePrepared("p1", "p2", "p3")
	})
}

// TestHandOverUnnoticed: who has not noticed that another replica acted meanwhile reads again what that
// has left, rather than overwrite it.
func TestHandOverUnnoticed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), onNode("p1"), onNode("p2"), onNode("p3"))
		w.start(w.directory)
		before := w.kubelets.runningNode("n")
		w.prepare(w.kubelets, "p1", "c1")
		other := &world{t: t, directory: w.directory, Server: w.Server, store: w.store, events: w.events}
		other.start(w.directory)
		other.prepare(other.kubelets, "p2", "c2")
		other.stop()
		_, err := before.claims.Join("p3", nil)
		require.ErrorIs(t, err, claiminfo.ErrOutdated)
		time.Sleep(socketScanInterval)
		synctest.Wait()
		require.NotSame(t, before, w.kubelets.runningNode("n"))
		w.prepare(w.kubelets, "p3", "c3")
		w.requirePrepared("p1", "p2", "p3")
	})
}

// TestLostLeadership: the nodes of a leader end with its leadership.
func TestLostLeadership(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"))
		k := w.startReplica("a", shard.Leader)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NotNil(t, k.runningNode("n"))
		apitest.Edit(w.Server, "default", "l", func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.RenewTime = new("another"), &metav1.MicroTime{Time: time.Now().Add(time.Minute)}
		})
		time.Sleep(15 * time.Second) // before it leads again
		synctest.Wait()
		require.Nil(t, k.runningNode("n"))
	})
}
