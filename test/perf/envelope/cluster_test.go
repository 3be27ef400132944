package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOnCluster: the API server takes the objects of all points, and rounds at a small point, and at one
// with a bit of everything, measure all that there is to measure.
func TestOnCluster(t *testing.T) {
	ctx := t.Context()
	subjects, err := (&options{}).subjects()
	require.NoError(t, err)
	e := &envelope{subjects: subjects, rounds: 2, progress: os.Stderr, points: map[shape]point{}}
	w, err := startWorld(ctx, subjects[0], nil, os.Stderr)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, w.stopBeside())
		w.cluster.StopAfter(t)
	})

	only := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	require.NoError(t, e.choose(regexp.MustCompile("")))
	for _, d := range e.chosen {
		for _, value := range d.points {
			s := d.shapeAt(value)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: types.UID("1")}}
			for _, slice := range s.newSlices(node) {
				kept, err := w.client.ResourceV1().ResourceSlices().Create(ctx, slice, only)
				require.NoError(t, err, "%s at %d", d.name, value)
				require.True(t, equality.Semantic.DeepEqual(slice.Spec, kept.Spec), "nothing is dropped of %s at %d", d.name, value)
			}
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: s.newClaimSpec()}
			_, err := w.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, only)
			require.NoError(t, err, "%s at %d", d.name, value)
		}
	}

	small := shape{Nodes: 2, Devices: 4, Slices: 1, Attributes: 2, Drivers: 1, Shares: 1, Pods: 6, Requests: 1, DevicesByRequest: 1}
	all := shape{
		Nodes: 3, Devices: 16, Slices: 2, Attributes: 3, Drivers: 2, Counters: 2, Shares: 1, Filled: 50,
		Pods: 6, Requests: 1, Matched: 2, Selectors: 1, Alternatives: 2,
	}
	if w.Version < "v1.35" {
		all.Counters = 0
	}
	for _, s := range []shape{small, all} {
		p, err := e.measurePoint(ctx, s)
		require.NoError(t, err)
		require.Len(t, p.Samples[w.name()], e.rounds)
		for _, m := range metrics {
			for _, value := range valuesOf(p.Samples[w.name()], m) {
				require.Positive(t, value, m.key)
			}
		}
		require.Len(t, p.Paces[w.name()], e.rounds)
		require.Positive(t, p.medianPace().Creating)
	}
	played := small
	played.Sidecar = 1
	require.NoError(t, w.createFleet(ctx, played))
	measured, _, err := w.runRound(ctx)
	require.NoError(t, err)
	require.Positive(t, measured["startP50"])
	kept, err := w.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: kept.Items[0].Spec.Pool.Name}}
	require.True(t, equality.Semantic.DeepEqual(played.newSlices(node)[0].Spec.Devices, kept.Items[0].Spec.Devices), "kwok-dra publishes the same devices")
	before := e.starts
	_, err = e.measurePoint(ctx, small)
	require.NoError(t, err)
	require.Equal(t, before, e.starts, "a shape is measured once")
}
