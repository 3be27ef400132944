package simulator

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkSchedule has 5,000 nodes with 8 devices each and 1,000 Pods, of which
// each claims two devices by a selector.
func BenchmarkSchedule(b *testing.B) {
	world := gpus(5000, 8)
	template := parse(b, world, pod("p", `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'A100'"}}]}}]}`))[0]
	var pods []*corev1.Pod
	for i := range 1000 {
		another := template.DeepCopy()
		another.Name = fmt.Sprintf("p-%d", i)
		pods = append(pods, another)
	}
	for b.Loop() {
		scheduler := NewScheduler(world)
		for _, p := range pods {
			require.NotEmpty(b, scheduler.Schedule(b.Context(), p).Node)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/1000pods")
}

// BenchmarkScheduleFull is the worst case: of 1,000 Pods of ten kinds none fits, on
// none of 5,000 nodes, and for each kind it is said why.
func BenchmarkScheduleFull(b *testing.B) {
	world := gpus(5000, 8)
	var pods []*corev1.Pod
	for kind := range 10 {
		template := parse(b, world, pod(fmt.Sprintf("p-%d", kind), fmt.Sprintf(`{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: %d}}]}`, 9+kind)))[0]
		for i := range 100 {
			another := template.DeepCopy()
			another.Name = fmt.Sprintf("p-%d-%d", kind, i)
			pods = append(pods, another)
		}
	}
	for b.Loop() {
		scheduler := NewScheduler(world)
		for _, p := range pods {
			require.Empty(b, scheduler.Schedule(b.Context(), p).Node)
		}
		for _, p := range pods {
			require.NotEmpty(b, scheduler.Explain(b.Context(), p))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "s/1000pods")
}

// BenchmarkOutlook says why a Pod fits on none of 2,000 nodes.
func BenchmarkOutlook(b *testing.B) {
	world := gpus(2000, 8)
	pod, claim := pending("large", 9)
	world.Claims = append(world.Claims, claim)
	b.ReportAllocs()
	for b.Loop() {
		if NewScheduler(world).Outlook(b.Context(), pod).Fits() {
			b.Fatal("it fits")
		}
	}
}
