package faults

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/test/perf/pairs"
)

const (
	// healthyNodes are those whose slices are timed, rounds how often at most with
	// and without the poison, and changes how many times each.
	healthyNodes = 10
	rounds       = 10
	changes      = 100
	// bearable is how much longer it may take with the poison on a machine that has
	// nothing else to do, and starved how much longer it takes anywhere where the
	// poison holds up the others.
	bearable = 1.2
	starved  = 10
	// churnPause is the time between two changes of the poison.
	churnPause = 100 * time.Millisecond
)

// fixedRounds are for a machine that has nothing else to do. In 20 there is enough to
// tell a ratio by.
var fixedRounds = flag.Int("rounds", 0, "rounds of each poison, all of which count together, on a machine that has nothing else to do; 0: up to 10, until one is good")

// TestHostile has one node or template at a time do harm, and times how soon the
// slices of the other nodes follow these. The ratio of the 99th percentiles with
// and without the poison is printed. A machine that has other things to do makes it
// anything, so it is measured again until it is bearable, a few times, and only
// where the others are starved in all of them the test fails.
func TestHostile(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t)
	require.NoError(t, err)
	h := newHostile(t, w)
	for _, p := range poisons() {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) { h.against(t, p) })
	}
	t.Run("claims-of-all-drivers", h.claimsOfMany)
	processes, logs := w.takeAll()
	for _, process := range processes {
		require.NoError(t, process.Stop())
	}
	for _, log := range logs {
		require.NoError(t, panics(log))
	}
}

// hostile is a world with healthy nodes.
type hostile struct {
	*world
	all templates

	mu sync.Mutex
	// racks are the values of the attribute in the slices of nodes, and seen when
	// they came.
	racks map[string]string
	came  *sync.Cond
	count int
	pods  int
}

func newHostile(t *testing.T, w *world) *hostile {
	h := &hostile{world: w, all: initialTemplates(), racks: map[string]string{}}
	h.came = sync.NewCond(&h.mu)
	require.NoError(t, h.configure(t.Context(), ""))
	go func() {
		for t.Context().Err() == nil { // the client ends a watch after a while
			if slices, err := w.client.ResourceV1().ResourceSlices().Watch(t.Context(), metav1.ListOptions{}); err == nil {
				h.follow(slices)
			}
		}
	}()
	for i := range healthyNodes {
		require.NoError(t, h.createNode(t.Context(), fmt.Sprint("healthy-", i), map[string]string{kindLabel: "a"}))
	}
	process, err := w.launch(0)
	require.NoError(t, err)
	require.NoError(t, process.WaitReady(t.Context()))
	return h
}

func (h *hostile) follow(slices watch.Interface) {
	for event := range slices.ResultChan() {
		slice, ok := event.Object.(*resourcev1.ResourceSlice)
		if !ok || slice.Spec.NodeName == nil || len(slice.Spec.Devices) == 0 {
			continue
		}
		h.mu.Lock()
		h.racks[*slice.Spec.NodeName] = foundDevice(&slice.Spec.Devices[0]).rack
		h.mu.Unlock()
		h.came.Broadcast()
	}
}

func (h *hostile) configure(ctx context.Context, more string) error {
	return persist(ctx, func(ctx context.Context) error {
		return h.writeConfigMap(ctx, map[string]string{"configuration": configuration, "templates": h.all.yaml() + more})
	})
}

// against measures with and without the poison, in turn, and looks in the end
// whether all other nodes have what they are to have.
func (h *hostile) against(t *testing.T, p poison) {
	for i := range p.nodes {
		require.NoError(t, h.createNode(t.Context(), fmt.Sprint(poisoned, "-", i), p.labels))
	}
	t.Cleanup(func() {
		for i := range p.nodes {
			_ = h.client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), fmt.Sprint(poisoned, "-", i), metav1.DeleteOptions{})
		}
	})
	// What is compared with are the same nodes, which change as often and do no harm.
	calmly := func() []time.Duration { return h.measureWith(t, "", relabel) }
	if p.calm != nil {
		calmly = func() []time.Duration { return h.measureWith(t, p.template, p.calm) }
	}
	var ratios []float64
	var without, with []time.Duration
	enough := func() bool {
		if *fixedRounds > 0 {
			return len(ratios) >= *fixedRounds
		}
		return len(ratios) >= 2 && (len(ratios) >= rounds || slices.Min(ratios) <= bearable)
	}
	for !enough() {
		calm := calmly()
		hurt := h.measureWith(t, p.template, p.churn)
		without, with = append(without, calm...), append(with, hurt...)
		ratios = append(ratios, pairs.Quantile(hurt, 0.99).Seconds()/pairs.Quantile(calm, 0.99).Seconds())
	}
	h.settled(t)
	pooled := pairs.Quantile(with, 0.99).Seconds() / pairs.Quantile(without, 0.99).Seconds()
	t.Logf("%s: median %s without, %s with; 99th percentile %s without, %s with, ratio %.2f; ratios of the rounds %.2f", p.name,
		round(pairs.Quantile(without, 0.5)), round(pairs.Quantile(with, 0.5)), round(pairs.Quantile(without, 0.99)), round(pairs.Quantile(with, 0.99)), pooled, ratios)
	if *fixedRounds > 0 {
		require.LessOrEqual(t, pooled, bearable, "the poison slows the other nodes")
	}
	require.Less(t, slices.Min(ratios), float64(starved), "the poison holds up the other nodes")
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// measureWith measures while the churn goes on.
func (h *hostile) measureWith(t *testing.T, template string, churn func(ctx context.Context, h *hostile, round int) error) []time.Duration {
	require.NoError(t, h.configure(t.Context(), template))
	ctx, cancel := context.WithCancel(t.Context())
	var churning sync.WaitGroup
	churning.Go(func() {
		for round := 0; ctx.Err() == nil; round++ {
			if err := churn(ctx, h, round); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			sleep(ctx, churnPause)
		}
	})
	measured := h.measure(t)
	cancel()
	churning.Wait()
	require.NoError(t, h.configure(t.Context(), ""))
	return measured
}

// measure changes healthy nodes, one after the other, and times their slices.
func (h *hostile) measure(t *testing.T) []time.Duration {
	var latencies []time.Duration
	for range changes {
		h.count++
		name, rack := fmt.Sprint("healthy-", h.count%healthyNodes), fmt.Sprint("r", h.count)
		started := time.Now()
		require.NoError(t, h.patchNode(t.Context(), name, fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, rackLabel, rack)))
		require.True(t, h.awaitRack(name, rack), "the slice of node %s has not followed the node", name)
		latencies = append(latencies, time.Since(started))
	}
	return latencies
}

// awaitRack waits for a slice to have the value.
func (h *hostile) awaitRack(node, rack string) bool {
	late := false
	timer := time.AfterFunc(stuck, func() {
		h.mu.Lock()
		late = true
		h.mu.Unlock()
		h.came.Broadcast()
	})
	defer timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.racks[node] != rack && !late {
		h.came.Wait()
	}
	return h.racks[node] == rack
}

// settled waits until all is as the oracle says.
func (h *hostile) settled(t *testing.T) {
	deadline := time.Now().Add(stuck)
	var wrong []string
	for time.Now().Before(deadline) {
		state, err := h.look(t.Context(), h.all)
		require.NoError(t, err)
		if wrong = state.wrongPools(); len(wrong) == 0 {
			return
		}
		sleep(t.Context(), 100*time.Millisecond)
	}
	require.Empty(t, wrong)
}
