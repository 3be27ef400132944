package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

const (
	// standingBy has the replicas choose a leader that acts for all nodes.
	standingBy = `
resources: [../replicas]
patches:
- target: {kind: Deployment}
  patch: |
    - {op: test, path: /spec/template/spec/containers/1/args/2, value: --shard-mode=lease}
    - {op: replace, path: /spec/template/spec/containers/1/args/2, value: --shard-mode=leader}
`
	// fleetNodes are enough for each of the replicas to have some.
	fleetNodes = 30
	// handover bounds the wait for others to act for the nodes of a replica that has
	// ended: kwok's leases last for 40 s, and it looks at them every 10 s. The rest is
	// for a machine that has more to do.
	handover = patience
)

// TestReplicas runs three replicas, ends one of them as the end of its machine
// would, and has the others go on with its nodes.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for mode, directory := range map[string]string{"lease": "replicas", "leader": "mine"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			requireHostNames(t)
			options := hostOptions()
			options.Audit = true
			u := follows(t, options)
			u.named = true
			u.defineStages("v0.8.0")
			u.write(standingBy, "mine", "kustomization.yaml")
			u.does("Replicas", "-k replicas", "-k "+directory)
			testReplicas(&fleetUser{user: u})
		})
	}
}

// fleetUser is a user with a fleet of fake nodes.
type fleetUser struct {
	*user
	nodes   []string
	tainted bool
}

func testReplicas(u *fleetUser) {
	u.apply(fleetDevices)
	for i := range fleetNodes {
		u.addNode(fmt.Sprint("fake-", i), i%5 == 0)
	}
	u.requireAll()
	before, leader := u.slices(), u.leader()

	ended := u.end(leader)
	u.taint()
	u.addNode("late", true)
	u.requireAll()
	u.T().Logf("%s after the leader had ended, all was as it should be", time.Since(ended).Round(time.Second))
	next := u.leader()
	require.NotEqual(u.T(), leader, next)
	after := u.slices()
	for node, slice := range before {
		require.Equal(u.T(), slice.UID, after[node].UID, "slice of %q", node)
	}
	u.requireWrittenOnce(leader, next)

	require.NoError(u.T(), u.client.CoreV1().Nodes().Delete(u.T().Context(), "fake-1", metav1.DeleteOptions{}))
	until(u.T(), patience, func() string {
		if _, has := u.slices()["fake-1"]; has {
			return "node fake-1 is gone, and its slice is not"
		}
		return ""
	})
}

// fleetDevices are devices of each node, and ports that all nodes share: a claim
// with one of these is of no single node.
const fleetDevices = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: fleet, operator: Exists}]}]}
  devices: [{name: gpu, count: 8}]
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: ports}
spec:
  driver: port.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: fleet, operator: Exists}]}]}
  sharedWith: {allNodes: true}
  devices: [{name: port, count: 64}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: port.example.com}
spec: {selectors: [{cel: {expression: device.driver == "port.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
`

// port is a claim of what nodes share. It is of no template: of two claims that
// Kubernetes makes for a Pod, its controller can forget one while it notes the other,
// in turns and without end.
const port = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: port-%s}
spec: {devices: {requests: [{name: port, exactly: {deviceClassName: port.example.com}}]}}
`

func (u *fleetUser) apply(manifest string) {
	u.T().Helper()
	_, err := u.cluster.KubectlInput(u.T().Context(), strings.NewReader(manifest), "apply", "-f", "-")
	require.NoError(u.T(), err)
}

// addNode adds a fake node and a Pod with a claim on it, and with another of what
// nodes share.
func (u *fleetUser) addNode(name string, shares bool) {
	u.T().Helper()
	u.fakeNode(name, map[string]string{"fleet": "a", "kwok.x-k8s.io/node": "fake"})
	u.nodes = append(u.nodes, name)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "train", Image: "pause"}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}},
			Affinity:       &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: fleet.SelectNode(name)}},
		},
	}
	if shares {
		u.apply(fmt.Sprintf(port, name))
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "port", ResourceClaimName: new("port-" + name)})
	}
	_, err := u.client.CoreV1().Pods(metav1.NamespaceDefault).Create(u.T().Context(), pod, metav1.CreateOptions{})
	require.NoError(u.T(), err)
}

// taint taints a device of each node.
func (u *fleetUser) taint() {
	u.T().Helper()
	u.run("kubectl annotate nodes --selector fleet dra.kwok.x-k8s.io/device-taints=gpu-7:example.com/broken=yes:NoSchedule")
	u.tainted = true
}

// slices are those that there are, by node; the one that nodes share has none.
func (u *fleetUser) slices() map[string]resourcev1.ResourceSlice {
	u.T().Helper()
	list, err := u.client.ResourceV1().ResourceSlices().List(u.T().Context(), metav1.ListOptions{})
	require.NoError(u.T(), err)
	all := map[string]resourcev1.ResourceSlice{}
	for _, slice := range list.Items {
		node := ""
		if slice.Spec.NodeName != nil {
			node = *slice.Spec.NodeName
		}
		require.NotContains(u.T(), all, node, "two slices of %q", node)
		all[node] = slice
	}
	return all
}

// requireAll waits until all nodes have their devices, and all Pods run with what
// they claim.
func (u *fleetUser) requireAll() {
	u.T().Helper()
	until(u.T(), handover, func() string { return cmp.Or(u.missingSlices(), u.missingPods(), u.missingStatus()) })
}

func (u *fleetUser) missingSlices() string {
	all := u.slices()
	if len(all) != len(u.nodes)+1 {
		return fmt.Sprintf("there are %d slices, not one of each of %d nodes and one that they share; there are none of %s", len(all), len(u.nodes), u.without(all))
	}
	for _, node := range u.nodes {
		// The late node comes untainted.
		if want := u.tainted && node != "late"; want != (len(all[node].Spec.Devices[7].Taints) > 0) {
			return fmt.Sprintf("device gpu-7 of node %s is tainted: %t", node, !want)
		}
	}
	return ""
}

// without tells of the nodes that have no slice, and whose they are.
func (u *fleetUser) without(all map[string]resourcev1.ResourceSlice) string {
	var missing []string
	for _, name := range u.nodes {
		if _, has := all[name]; has {
			continue
		}
		node, err := u.client.CoreV1().Nodes().Get(u.T().Context(), name, metav1.GetOptions{})
		require.NoError(u.T(), err)
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		holder := "nobody"
		lease, err := u.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(u.T().Context(), name, metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		missing = append(missing, fmt.Sprintf("%s (ready: %t, lease of %s)", name, ready, holder))
	}
	return strings.Join(missing, ", ")
}

func (u *fleetUser) missingPods() string {
	pods, err := u.client.CoreV1().Pods(metav1.NamespaceDefault).List(u.T().Context(), metav1.ListOptions{})
	require.NoError(u.T(), err)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || !hasCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionTrue) {
			return fmt.Sprintf("Pod %s on node %q does not run with its claims prepared", pod.Name, pod.Spec.NodeName)
		}
	}
	claims, err := u.client.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(u.T().Context(), metav1.ListOptions{})
	require.NoError(u.T(), err)
	for _, claim := range claims.Items {
		if len(claim.Status.Devices) == 0 {
			return fmt.Sprintf("claim %s shows no device", claim.Name)
		}
	}
	return ""
}

// missingStatus wants the leader to have told in the template on how many nodes
// it is published.
func (u *fleetUser) missingStatus() string {
	output, err := u.cluster.Kubectl(u.T().Context(), "get", "resourcepooltemplate", "gpus", "-o", "jsonpath={.status.nodes} {.status.slices} {.status.devices}")
	require.NoError(u.T(), err)
	if want := fmt.Sprint(len(u.nodes), " ", len(u.nodes), " ", 8*len(u.nodes)); output != want {
		return fmt.Sprintf("nodes, slices and devices in the status of the template: %s, want %s", output, want)
	}
	return ""
}

// leader is the Pod whose kwok-dra leads.
func (u *fleetUser) leader() string {
	u.T().Helper()
	lease, err := u.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(u.T().Context(), "kwok-dra", metav1.GetOptions{})
	require.NoError(u.T(), err)
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// end ends a Pod as the end of its machine would, and tells when.
func (u *fleetUser) end(name string) time.Time {
	u.T().Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, pod := range u.pods {
		if pod.pod.Name != name {
			continue
		}
		for _, container := range pod.containers {
			container.kill()
		}
		return time.Now()
	}
	u.T().Fatalf("no Pod %s runs on the host", name)
	return time.Time{}
}

// requireWrittenOnce wants no write of any replica to have changed what was there
// before for no reason: slices were made and then tainted, and claims prepared.
// What is of no single node was for the leaders to write.
func (u *fleetUser) requireWrittenOnce(leaders ...string) {
	u.T().Helper()
	contents := map[string][]string{}
	for _, write := range u.writes() {
		of := write.ObjectRef.Resource + " " + write.ObjectRef.Name
		if write.ObjectRef.Resource == "resourcepooltemplates" || strings.Contains(of, "port") {
			require.Contains(u.T(), leaders, write.User.Extra["authentication.kubernetes.io/pod-name"][0], of)
		}
		if made := content(u.T(), &write); made != "" && !slices.Contains(contents[of], made) {
			contents[of] = append(contents[of], made)
		}
		require.NotEqual(u.T(), "delete", write.Verb, of)
	}
	require.NotEmpty(u.T(), contents)
	for of, versions := range contents {
		allowed := 1
		if strings.HasPrefix(of, "resourceslices") {
			allowed = 2
		}
		require.LessOrEqual(u.T(), len(versions), allowed, "%s: %s", of, strings.Join(versions, "\n"))
	}
}

// content is what the write made of the object, or "" for one of another kind. The
// log does not have what it made of a slice, so each write counts as a change.
func content(t *testing.T, event *cluster.AuditEvent) string {
	t.Helper()
	switch event.ObjectRef.Resource {
	case "resourceslices":
		return event.AuditID
	case "resourceclaims":
		var claim resourcev1.ResourceClaim
		require.NoError(t, json.Unmarshal(event.ResponseObject, &claim))
		return fmt.Sprintf("%+v", claim.Status.Devices)
	}
	return ""
}

// writes are those of all replicas that the API server has taken.
func (u *fleetUser) writes() []cluster.AuditEvent {
	u.T().Helper()
	writes, err := u.cluster.Audited(func(event *cluster.AuditEvent) bool {
		return event.Mutating() && !strings.Contains(event.RequestURI, "dryRun=") && strings.HasPrefix(event.UserAgent, "kwok-dra/") && event.ResponseStatus.Code < 300
	})
	require.NoError(u.T(), err)
	return writes
}
