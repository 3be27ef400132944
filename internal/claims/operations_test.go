package claims

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubeletmetrics"
)

// measured are the counts and the sums of what a kubelet measures: "PrepareResources false 1 2s".
func measured(t *testing.T, m *kubeletmetrics.Metrics) (all []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var words []string
			for _, label := range metric.GetLabel() {
				words = append(words, label.GetValue()[strings.LastIndex(label.GetValue(), "/")+1:])
			}
			if h := metric.GetHistogram(); h != nil {
				words = append(words, time.Duration(h.GetSampleSum()*float64(time.Second)).Round(time.Millisecond).String(), strings.Repeat("x", int(h.GetSampleCount())))
			} else {
				words = append(words, strings.Repeat("x", int(metric.GetGauge().GetValue())))
			}
			all = append(all, strings.TrimSpace(strings.Join(words, " ")))
		}
	}
	return all
}

// TestKubeletMetrics follows a Pod that fails, is prepared, and ends.
func TestKubeletMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "a")
		w := idleWorld(t, template("d", "")+configuration(failWhen), newNode("n"), pod, allocated("a", pod))
		w.measures = kubeletmetrics.New()
		w.start()
		require.Equal(t, []string{"d OK NodePrepareResources 0s x", "false PrepareResources 0s x", "<any> x", "d x"}, measured(t, w.measures))
		w.editPod("p", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		w.takeCalls(false)
		require.Equal(t, []string{
			"d OK NodePrepareResources 0s x", "d OK NodeUnprepareResources 0s x",
			"false PrepareResources 0s x", "false UnprepareResources 0s x", "<any>",
		}, measured(t, w.measures))
		time.Sleep(time.Hour)
		require.Len(t, measured(t, w.measures), 5, "an end counts once")
	})
}

// TestKubeletMetricsOfFailures: time between two tries does not count, and what is held back does.
func TestKubeletMetricsOfFailures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "a")
		say(corev1.ConditionFalse, "broken")(pod)
		w := idleWorld(t, template("d", "")+configuration(failWhen), newNode("n"), pod, allocated("a", pod))
		w.measures = kubeletmetrics.New()
		w.start()
		require.Equal(t, []string{"d OK NodePrepareResources 0s x", "true PrepareResources 0s x", "<any>"}, measured(t, w.measures), "the driver answers with a failure")
		time.Sleep(time.Second)
		w.editPod("p", say(corev1.ConditionTrue, ""))
		w.takeCalls(false)
		time.Sleep(10 * time.Minute)
		w.takeCalls(false)
		require.Equal(t, []string{"d OK NodePrepareResources 0s xx", "false PrepareResources 0s x", "true PrepareResources 0s x", "<any> x", "d x"}, measured(t, w.measures))
	})
}

// TestKubeletMetricsOfPodsThatAreGone count their end too.
func TestKubeletMetricsOfPodsThatAreGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := newPod("p", "a")
		w := idleWorld(t, template("d", ""), newNode("n"), pod, allocated("a", pod))
		w.measures = kubeletmetrics.New()
		w.start()
		w.Remove(pod)
		w.takeCalls(false)
		require.Equal(t, []string{
			"d OK NodePrepareResources 0s x", "d OK NodeUnprepareResources 0s x",
			"false PrepareResources 0s x", "false UnprepareResources 0s x", "<any>",
		}, measured(t, w.measures))
	})
}
