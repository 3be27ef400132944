package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// TestKustomize installs kwok 0.8 with kwok-dra into an empty cluster, breaks a
// device, and uninstalls.
func TestKustomize(t *testing.T) {
	t.Parallel()
	u := follows(t, taintOptions(t))
	before := u.fresh()
	u.does("Kustomize")
	u.does("Devices")
	u.requirePrepared(h100)
	u.does("Break a device")
	u.uninstalls(before)
}

// TestKwokGeneral adds kwok-dra to a kwok 0.8 that is there, with the general
// Stages, which show a Pod wait.
func TestKwokGeneral(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	u.installKwok()
	u.does("Kustomize", "kustomize/kwok\n", "kustomize/kwok-general\n")
	waited := u.watchWaiting()
	u.does("Devices")
	u.requirePrepared(h100)
	require.NotEmpty(t, waited(), "no Pod was seen waiting for its claims")
	node, err := u.client.CoreV1().Nodes().Get(t.Context(), h100, metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == "dra.kwok.x-k8s.io/PluginRegistered" && c.Status == corev1.ConditionTrue
	}))
	u.testAffinity()
}

// TestKarpenter adds kwok-dra to kwok as Karpenter installs it, for the nodes of
// its partition only.
func TestKarpenter(t *testing.T) {
	t.Parallel()
	options := hostOptions()
	options.KwokVersion = "0.6.1" // 0.6.0 cannot be built as a module
	u := follows(t, options)
	u.defineStages("v0.6.0") // as make install-kwok does
	u.does("Karpenter")
	u.fakeNode("other", map[string]string{"dra.kwok.x-k8s.io/profile": "nvidia-h100", "kwok.x-k8s.io/node": "fake", "kwok-partition": "b"})
	u.does("Devices", "scale nvidia-h100 --nodes 2", `generate nvidia-h100 --nodes 2 | sed 's|type: kwok|kwok.x-k8s.io/node: fake\n    kwok-partition: a|' | kubectl apply --server-side -f -`)
	u.requirePrepared(h100)
	require.Empty(t, u.slicesOf("other"))
}

// TestExistingKwok adds kwok-dra to a kwok that was installed by itself, first
// beside it as a program, then in its Pod.
func TestExistingKwok(t *testing.T) {
	t.Parallel()
	u := follows(t, hostOptions())
	u.installKwok()
	u.does("Program", "127.0.0.1:10246", "127.0.0.1:0")
	u.does("Devices")
	u.requirePrepared(h100)
	published := u.slicesOf(h100)
	u.background()
	u.does("Existing kwok")
	now := u.slicesOf(h100)
	require.Len(t, now, len(published))
	for i := range now {
		require.Equal(t, published[i].UID, now[i].UID)
		require.Equal(t, published[i].Spec, now[i].Spec, "slices are as they were, but for whose they are")
	}
}

// defineStages has the cluster know the Stages of a release of kwok.
func (u *user) defineStages(release string) {
	u.T().Helper()
	u.run("kubectl apply -k https://github.com/kubernetes-sigs/kwok/kustomize/crd?ref=" + release + "\n" +
		"until kubectl get stages.kwok.x-k8s.io; do sleep 1; done")
}

// installKwok installs kwok as its documentation says.
func (u *user) installKwok() {
	u.T().Helper()
	const kwok = "https://github.com/kubernetes-sigs/kwok/kustomize/"
	u.defineStages("v0.8.0")
	u.run("kubectl kustomize " + kwok + "kwok?ref=v0.8.0 | sed 's|kwok/kwok$|kwok/kwok:v0.8.0|' | kubectl apply -f -\n" +
		"kubectl apply -k " + kwok + "stage/fast?ref=v0.8.0\n" +
		"kubectl -n kube-system rollout status deployment kwok-controller")
}

// withProfiles is what users have who choose their devices when they install.
const withProfiles = `
resources:
- ../kustomize/kwok
- ../kustomize/config
components:
- ../kustomize/profiles/nvidia-h100
- ../kustomize/profiles/gpu-example
patches:
- target: {kind: Deployment}
  patch: |
    - {op: test, path: /spec/template/spec/containers/0/name, value: kwok-controller}
    - {op: test, path: /spec/template/spec/containers/1/name, value: kwok-dra}
`

// TestDryRun has the API server check all that the kustomizations render, alone
// and as the base of a user's own, and take a network policy, which nothing enforces here.
func TestDryRun(t *testing.T) {
	t.Parallel()
	u := follows(t, cluster.Options{Disable: []string{cluster.Kwok, cluster.ControllerManager, cluster.Scheduler}})
	u.defineStages("v0.8.0")
	u.run("kubectl apply -k kustomize/crd")
	u.write(withProfiles, "mine", "kustomization.yaml")
	for _, overlay := range []string{"kustomize/kwok", "kustomize/kwok-general", "kustomize/karpenter", "mine"} {
		u.run("kubectl apply --dry-run=server -k " + overlay)
	}
	rendered, err := u.shell("kubectl kustomize mine").Output()
	require.NoError(t, err)
	for _, name := range []string{"nvidia-h100", "gpu-example"} {
		require.Contains(t, string(rendered), "kind: ResourcePoolTemplate\nmetadata:\n  name: "+name+"\n")
	}
	u.does("Network policy")
	u.run("kubectl -n kube-system get networkpolicy kwok-dra")
}

// write writes a file of the user's own beside the repository's.
func (u *user) write(content string, elem ...string) {
	u.T().Helper()
	file := u.path(elem...)
	require.NoError(u.T(), os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(u.T(), os.WriteFile(file, []byte(content), 0o600))
}

// objects are those of the cluster.
type objects struct {
	*testing.T
	client kubernetes.Interface
}

func (o objects) fakeNode(name string, labels map[string]string) {
	o.Helper()
	_, err := o.client.CoreV1().Nodes().Create(o.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}, metav1.CreateOptions{})
	require.NoError(o, err)
}

func (o objects) slicesOf(node string) []resourcev1.ResourceSlice {
	o.Helper()
	list, err := o.client.ResourceV1().ResourceSlices().List(o.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(o, err)
	return list.Items
}

// h100 is one of the two nodes of the section about devices.
const h100 = "nvidia-h100-0"

// requirePrepared waits for the devices of the profile on the node, and wants the claims of
// all Pods prepared.
func (o objects) requirePrepared(node string) {
	o.Helper()
	until(o.T, patience, func() string {
		if published := o.slicesOf(node); len(published) != 1 || len(published[0].Spec.Devices) != 8 {
			return fmt.Sprintf("node %s has %d slices", node, len(published))
		}
		return ""
	})
	pods, err := o.client.CoreV1().Pods("default").List(o.Context(), metav1.ListOptions{})
	require.NoError(o, err)
	require.NotEmpty(o, pods.Items)
	for _, pod := range pods.Items {
		require.Equal(o, corev1.PodRunning, pod.Status.Phase)
		require.True(o, hasCondition(&pod, corev1.PodReadyToStartContainers, corev1.ConditionTrue), "Pod %s", pod.Name)
		require.NotEmpty(o, pod.Status.ResourceClaimStatuses)
	}
}

func hasCondition(pod *corev1.Pod, of corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of && c.Status == status })
}

// watchWaiting notes which Pods are seen with the status of a Pod whose claims
// are not prepared yet. The result tells which.
func (o objects) watchWaiting() func() []string {
	o.Helper()
	ctx, cancel := context.WithCancel(o.Context())
	watch, err := o.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	require.NoError(o, err)
	var waited []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if ok && hasCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionFalse) && len(pod.Status.ContainerStatuses) > 0 &&
				pod.Status.ContainerStatuses[0].State.Waiting != nil && pod.Status.ContainerStatuses[0].State.Waiting.Reason == "ContainerCreating" {
				waited = append(waited, pod.Name)
			}
		}
	}()
	return func() []string {
		watch.Stop()
		cancel()
		<-done
		return waited
	}
}

// testAffinity has kwok wait for a node that is there, although there are fake
// ones on which it could run.
func (u *user) testAffinity() {
	for i, label := range []string{"kwok.x-k8s.io/node=fake", "type=kwok", "dra.kwok.x-k8s.io/profile=none"} {
		name := fmt.Sprintf("fake-%d", i)
		u.fakeNode(name, nil)
		u.run("kubectl label node " + name + " " + label + "\nkubectl wait --for=condition=Ready --timeout=5m node " + name)
	}
	u.run("kubectl cordon host\nkubectl -n kube-system rollout restart deployment kwok-controller")
	pods := u.client.CoreV1().Pods("kube-system")
	until(u.T(), patience, func() string {
		list, err := pods.List(u.T().Context(), metav1.ListOptions{LabelSelector: "app=kwok-controller"})
		require.NoError(u.T(), err)
		for _, pod := range list.Items {
			require.Contains(u.T(), []string{"", hostName}, pod.Spec.NodeName)
			if hasCondition(&pod, corev1.PodScheduled, corev1.ConditionFalse) {
				return ""
			}
		}
		return "no Pod of kwok waits for a node"
	})
	u.run("kubectl uncordon host\nkubectl -n kube-system rollout status deployment kwok-controller")
}
