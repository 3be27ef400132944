package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// pokes is how often all is edited. What depends on chance, such as an order in
// which there is none, shows only at times.
const (
	pokes        = 3
	betweenPokes = 100 * time.Millisecond
)

// The counters of preparations, which rise when claims are written and at no other
// time.
var preparations = []string{"kwok_dra_claim_prepares_total", "kwok_dra_claim_unprepares_total"}

// errCounted is that preparations were counted at rest.
var errCounted = errors.New("rest: edits that change nothing are counted")

// poke edits what there is in a way that nobody is concerned about. Where others do
// nothing meanwhile, nothing is to be written, and no preparation to be counted. Where
// two sidecars do the same, one whose twin was faster may count that late, but only
// once.
func (r *run) poke(ctx context.Context) error {
	err := r.pokeOnce(ctx)
	if errors.Is(err, errCounted) && r.load.setup.areTwins() {
		err = r.pokeOnce(ctx)
	}
	return err
}

func (r *run) pokeOnce(ctx context.Context) error {
	before, err := r.awaitRest(ctx)
	if err != nil {
		return err
	}
	for i := range pokes {
		if err := r.world.pokeAll(ctx, fmt.Sprint(i)); err != nil {
			return err
		}
		sleep(ctx, betweenPokes)
	}
	r.world.ledger.await(ctx, quiet)
	after, err := r.atRest(ctx)
	if err != nil || before.cause != after.cause {
		return err // the scheduler, or a controller, has had something left to do
	}
	if err := before.wrong(after); err != nil {
		return fmt.Errorf("%w; the last write was %s", err, r.world.ledger.lastWrite())
	}
	return nil
}

// stillness is what does not change at rest.
type stillness struct {
	// cause is all that the sidecars write by.
	cause  string
	writes int
	// counted are the preparations that each sidecar has counted.
	counted map[*sidecar.Process]string
}

// awaitRest returns what does not change at rest once it has not changed for a while: a scheduler
// that finds the API server again binds Pods at any time, and each has the sidecars write.
func (r *run) awaitRest(ctx context.Context) (stillness, error) {
	last, err := r.atRest(ctx)
	for started := time.Now(); err == nil && time.Since(started) < r.within; {
		before := last
		r.world.ledger.await(ctx, quiet)
		if last, err = r.atRest(ctx); last.cause == before.cause && last.writes == before.writes {
			break
		}
	}
	return last, err
}

func (r *run) atRest(ctx context.Context) (stillness, error) {
	if err := r.world.awaitReady(ctx); err != nil {
		return stillness{}, err
	}
	state, err := r.world.look(ctx, r.load.all)
	if err != nil {
		return stillness{}, err
	}
	_, writes, _, _ := r.world.ledger.counts()
	found := stillness{cause: state.cause(), writes: writes, counted: map[*sidecar.Process]string{}}
	for _, process := range r.world.running() {
		for _, name := range preparations {
			count, err := process.Metric(ctx, name)
			if err != nil {
				return stillness{}, err
			}
			found.counted[process] += fmt.Sprintf("%s %v ", name, count)
		}
	}
	return found, nil
}

// wrong says what has become of the rest.
func (r stillness) wrong(after stillness) error {
	if after.writes != r.writes {
		return fmt.Errorf("rest: %d writes after edits that change nothing", after.writes-r.writes)
	}
	var errs []error
	for process, before := range r.counted {
		if now := after.counted[process]; now != before {
			errs = append(errs, fmt.Errorf("%w: %sbefore, %safter", errCounted, before, now))
		}
	}
	return errors.Join(errs...)
}

// cause is what others say of nodes, Pods and claims.
func (f *found) cause() string {
	var all []string
	for _, node := range f.nodes {
		all = append(all, fmt.Sprint("node ", node.UID, node.Labels, node.Annotations[taintAnnotation], ready(node)))
	}
	for _, pod := range f.pods {
		all = append(all, fmt.Sprint("pod ", pod.UID, pod.Spec.NodeName, pod.Labels, pod.Status.Phase, pod.DeletionTimestamp))
	}
	for i := range f.claims {
		claim := &f.claims[i]
		all = append(all, fmt.Sprint("claim ", claim.UID, claim.DeletionTimestamp, claim.Status.ReservedFor, claim.Status.Allocation != nil))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// pokeAll writes an annotation that nobody reads to all nodes, Pods and claims.
func (c clients) pokeAll(ctx context.Context, value string) error {
	s, err := c.list(ctx)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/poked": %q}}}`, value)
	edit := func(do func(ctx context.Context) error) {
		err = errors.Join(err, persist(ctx, do))
	}
	for name := range s.nodes {
		edit(func(ctx context.Context) error {
			_, err := c.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	for pod := range maps.Values(s.pods) {
		edit(func(ctx context.Context) error {
			_, err := c.client.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	for i := range s.claims {
		edit(func(ctx context.Context) error {
			_, err := c.client.ResourceV1().ResourceClaims(namespace).Patch(ctx, s.claims[i].Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return err
}

// TestStillness has the rule find what it is for.
func TestStillness(t *testing.T) {
	t.Parallel()
	process := &sidecar.Process{}
	before := stillness{writes: 3, counted: map[*sidecar.Process]string{process: "prepares 1 "}}
	require.NoError(t, before.wrong(before))
	require.ErrorContains(t, before.wrong(stillness{writes: 4, counted: before.counted}), "1 writes after edits that change nothing")
	require.ErrorContains(t, before.wrong(stillness{writes: 3, counted: map[*sidecar.Process]string{process: "prepares 2 "}}), "prepares 1 before, prepares 2 after")
	for about, change := range map[string]func(s *state){
		"a Pod that ends":     func(s *state) { s.pods["p1"].Status.Phase = corev1.PodSucceeded },
		"a label of a node":   func(s *state) { s.nodes["n"].Labels["a"] = "b" },
		"a claim that is let": func(s *state) { s.claims[0].Status.ReservedFor = nil },
	} {
		s := right()
		change(s)
		require.NotEqual(t, right().cause(), s.cause(), about)
	}
	same := right()
	same.nodes["n"].Annotations["example.com/poked"] = "1"
	same.claims[0].Status.Devices = []resourcev1.AllocatedDeviceStatus{}
	require.Equal(t, right().cause(), same.cause())
}
