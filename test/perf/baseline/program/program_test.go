package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/perf/baseline"
)

// writesOf counts what a client has written, such as "patch pods/status".
func writesOf(client *fake.Clientset) map[string]int {
	counts := map[string]int{}
	for _, action := range client.Actions() {
		what := action.GetVerb() + " " + action.GetResource().Resource
		if action.GetSubresource() != "" {
			what += "/" + action.GetSubresource()
		}
		switch action.GetVerb() {
		case "create", "update", "patch", "delete":
			counts[what]++
		}
	}
	return counts
}

// slicesFile has a slice of each node from 0 on.
func slicesFile(t *testing.T, count int) string {
	var list resourcev1.ResourceSliceList
	for i := range count {
		list.Items = append(list.Items, resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("slice-", i)},
			Spec:       resourcev1.ResourceSliceSpec{NodeName: new(fmt.Sprint("node-", i)), Driver: fleet.Driver},
		})
	}
	text, err := json.Marshal(list)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slices.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func node(number int) *corev1.Node { return fleet.NewNode(fmt.Sprint("node-", number)) }

// begin prepares the work of a program, and has it write until all is at rest.
func begin(t *testing.T, p *program, client *fake.Clientset) {
	write, err := p.prepareWrites(t.Context())
	require.NoError(t, err)
	synctest.Wait()
	require.Empty(t, writesOf(client), "it has not been told to begin")
	go func() { _ = write(t.Context()) }()
	synctest.Wait()
}

// TestSlices: each node gets its slice, once.
func TestSlices(t *testing.T) {
	t.Parallel()
	for _, work := range []string{baseline.RawSlices, baseline.WatchingSlices} {
		t.Run(work, func(t *testing.T) {
			t.Parallel()
			file := slicesFile(t, 3)
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(node(0), node(1), node(2), node(3))
				begin(t, &program{work: work, slices: file, client: client}, client)
				require.Equal(t, map[string]int{"create resourceslices": 3}, writesOf(client), "of node 3 there is none to publish")
			})
		})
	}
}

// TestWatchingSlices: nodes that come are learnt of, and what is seen to be there is
// not created again.
func TestWatchingSlices(t *testing.T) {
	t.Parallel()
	file := slicesFile(t, 2)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(node(0))
		begin(t, &program{work: baseline.WatchingSlices, slices: file, client: client}, client)
		require.Equal(t, map[string]int{"create resourceslices": 1}, writesOf(client))
		client.ClearActions()

		_, err := client.CoreV1().Nodes().Create(t.Context(), node(1), metav1.CreateOptions{})
		require.NoError(t, err)
		heartbeat := node(0)
		heartbeat.Status.Phase = corev1.NodeRunning
		_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), heartbeat, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]int{"create nodes": 1, "update nodes/status": 1, "create resourceslices": 1}, writesOf(client))
	})
}

// bound are a Pod and its claim, allocated unless that comes later.
func bound(name string, allocated bool) (*corev1.Pod, *resourcev1.ResourceClaim) {
	pod := fleet.NewPod("ns", name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
	pod.UID, pod.Spec.NodeName = "uid", "node-0"
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}}
	if allocated {
		claim.Status = allocation(name)
	}
	return pod, claim
}

func allocation(pod string) resourcev1.ResourceClaimStatus {
	return resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: fleet.Driver, Pool: "node-0", Device: "gpu-0"}},
		}},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: "uid"}},
	}
}

// prepared requires that a Pod and its claim show that they are prepared.
func prepared(t *testing.T, client *fake.Clientset, name string) {
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, fleet.IsPrepared(pod))
	claim, err := client.ResourceV1().ResourceClaims("ns").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, claim.Status.Devices, 1)
	require.Equal(t, "gpu-0", claim.Status.Devices[0].Device)
	require.Equal(t, "Prepared", claim.Status.Devices[0].Conditions[0].Reason)
	require.NotNil(t, claim.Status.Allocation)
}

// TestClaims: a Pod takes two writes, one of them to its claim.
func TestClaims(t *testing.T) {
	t.Parallel()
	for _, work := range []string{baseline.RawClaims, baseline.WatchingClaims} {
		t.Run(work, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, claimOfA := bound("a", true)
				b, claimOfB := bound("b", true)
				client := fake.NewClientset(a, claimOfA, b, claimOfB)
				begin(t, &program{work: work, client: client}, client)
				require.Equal(t, map[string]int{"patch resourceclaims/status": 2, "patch pods/status": 2}, writesOf(client))
				prepared(t, client, "a")
				prepared(t, client, "b")
			})
		})
	}
}

// TestWatchingClaims: a claim that is allocated later is learnt of.
func TestWatchingClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod, claim := bound("a", false)
		client := fake.NewClientset(pod, claim)
		begin(t, &program{work: baseline.WatchingClaims, client: client}, client)
		require.Empty(t, writesOf(client))

		claim.Status = allocation("a")
		_, err := client.ResourceV1().ResourceClaims("ns").UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, map[string]int{"update resourceclaims/status": 1, "patch resourceclaims/status": 1, "patch pods/status": 1}, writesOf(client))
		prepared(t, client, "a")
	})
}

// TestLists: all caches are filled, and nothing is written.
func TestLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(node(0))
		begin(t, &program{work: baseline.Lists, client: client}, client)
		watched := map[string]bool{}
		for _, action := range client.Actions() {
			watched[action.GetResource().Resource] = true
		}
		require.Equal(t, map[string]bool{"nodes": true, "resourceslices": true, "pods": true, "resourceclaims": true}, watched)
		require.Empty(t, writesOf(client))
	})
}

func TestUnknownWork(t *testing.T) {
	t.Parallel()
	_, err := (&program{work: "none"}).prepareWrites(t.Context())
	require.EqualError(t, err, `there is no --work "none"`)
}
