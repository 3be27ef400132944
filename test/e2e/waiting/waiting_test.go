package waiting

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
)

// TestFirstLine has the Pods of all cases wait, one after the other, and asks why. The cluster has
// no kwok, no kubelet and no kwok-dra.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	options := harness.AllFeatures(cluster.Options{
		Disable:   []string{cluster.Kwok},
		ExtraArgs: map[string][]string{cluster.ControllerManager: {"controllers=*,-node-lifecycle-controller"}}, // no node has heartbeats
	})
	if harness.KubernetesMinor() == 36 {
		options.FeatureGates = map[string]bool{"DRADeviceTaintRules": true}
		options.RuntimeConfig = map[string]bool{"resource.k8s.io/v1beta2": true}
	}
	c := cluster.ForTest(t, options)
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	config, err := admin.Config(c.Kubeconfig())
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	for _, each := range readCases(t) {
		t.Run(each.Name, func(t *testing.T) {
			if each.Since > harness.KubernetesMinor() {
				t.Skipf("needs Kubernetes 1.%d", each.Since)
			}
			w := &world{T: t, client: client, objects: objects, kubeconfig: c.Kubeconfig(), namespace: each.Name}
			documents := readDocuments(t, each.Name)
			w.applyDocuments(documents)
			if each.Scheduler == refuses {
				w.askAgain(documents[len(documents)-1].Object)
			}
			w.requireDecision(each.Scheduler)
			w.requireFirstLine(each.FirstLine)
			w.requireDecision(each.Scheduler)
		})
	}
}

// askAgain gives the Pod to the scheduler anew if the scheduler has bound it and should not have: it
// may not have heard of all objects of the case before.
func (w *world) askAgain(pod *unstructured.Unstructured) {
	w.Helper()
	for range 5 {
		isBound := false
		require.EventuallyWithT(w, func(c *assert.CollectT) {
			decided, err := w.client.CoreV1().Pods(w.namespace).Get(w.Context(), asker, metav1.GetOptions{})
			require.NoError(c, err)
			isBound = decided.Spec.NodeName != ""
			require.True(c, isBound || isRefused(decided))
		}, decisionTimeout, 20*time.Millisecond)
		if !isBound {
			return
		}
		w.deleteObject(pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		w.createObject(pod)
	}
}

// askWhetherFits asks whether a Pod without a node fits, before it comes.
func (w *world) askWhetherFits(pod *unstructured.Unstructured) {
	w.Helper()
	if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" {
		return
	}
	fresh := pod.DeepCopy()
	delete(fresh.Object, "status")
	manifest, err := fresh.MarshalJSON()
	require.NoError(w, err)
	w.verdict, w.fits, err = harness.KubectlDRA(w.Context(), w.kubeconfig, string(manifest), "fit", "-f", "-", "-n", w.namespace)
	require.NoError(w, err)
}

// requireDecision waits for what the scheduler makes of the Pod, which agrees with the verdict.
func (w *world) requireDecision(expected string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		pod, err := w.client.CoreV1().Pods(w.namespace).Get(w.Context(), asker, metav1.GetOptions{})
		require.NoError(c, err)
		if expected == notAsked {
			return
		}
		require.Equal(c, expected == binds, pod.Spec.NodeName != "", "%v", pod.Status.Conditions)
		require.True(c, w.fits == (expected == binds) || strings.Contains(w.verdict, "not considered: "), w.verdict)
		require.True(c, expected == binds || isRefused(pod), "%v", pod.Status.Conditions)
	}, decisionTimeout, 20*time.Millisecond)
}

// isRefused reports whether the scheduler has found no node for a Pod.
func isRefused(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

var (
	// age is how long a Pod has waited.
	age = regexp.MustCompile(` \(\d+[smh0-9]*\): `)
	// generated is the name of a claim that is made for the Pod.
	generated = regexp.MustCompile(`\b` + asker + `-gpu-[a-z0-9]{5}\b`)
)

// requireFirstLine asks why the Pod waits, until controllers have done their part.
func (w *world) requireFirstLine(expected string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		answer, _, err := harness.KubectlDRA(w.Context(), w.kubeconfig, "", "why", "pod/"+asker, "-n", w.namespace)
		require.NoError(c, err)
		first, _, _ := strings.Cut(answer, "\n")
		first = generated.ReplaceAllString(age.ReplaceAllString(first, ": "), asker+"-gpu-*****")
		require.Equal(c, expected, first, answer)
	}, 10*time.Second, 100*time.Millisecond)
}
