package plan

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// upstream is the controller with which real drivers publish, on a server of
// its own.
type upstream struct {
	*apitest.Server
	controller *resourceslice.Controller
	before     resourceslice.Stats
}

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	node := fakeNode("n", true)
	u := &upstream{Server: apitest.New(node)}
	ctx, cancel := context.WithCancel(runtest.QuietContext(t))
	controller, err := resourceslice.StartController(ctx, resourceslice.Options{
		DriverName: "d",
		KubeClient: u,
		Owner:      &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Resources:  &resourceslice.DriverResources{},
		// When it ends, the controller looks again and again until time goes on,
		// which in a bubble it does not.
		MutationCacheTTL: new(24 * time.Hour),
	})
	require.NoError(t, err)
	u.controller = controller
	t.Cleanup(func() {
		cancel()
		controller.Stop()
	})
	return u
}

// list returns the slices in the order of their names.
func (u *upstream) list(t *testing.T) []*resourcev1.ResourceSlice {
	t.Helper()
	list, err := u.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var all []*resourcev1.ResourceSlice
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	slices.SortFunc(all, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// publish waits until the controller has nothing left to do, and returns how
// many deletes, updates and creates that took.
func (u *upstream) publish(pools []devices.Pool) [3]int64 {
	resources := &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{}}
	for _, pool := range pools {
		var made []resourceslice.Slice
		contents, _ := pool.Slices(devices.CountersApart)
		for _, content := range contents {
			made = append(made, resourceslice.Slice{Devices: content.Devices})
		}
		resources.Pools[pool.Name] = resourceslice.Pool{Slices: made}
	}
	u.controller.Update(resources)
	synctest.Wait()
	time.Sleep(time.Minute) // past its sync delay
	synctest.Wait()
	now := u.controller.GetStats()
	wrote := [3]int64{now.NumDeletes - u.before.NumDeletes, now.NumUpdates - u.before.NumUpdates, now.NumCreates - u.before.NumCreates}
	u.before = now
	return wrote
}

// published tells for each slice its place, pool, generation, count and devices.
func published(list []*resourcev1.ResourceSlice) map[string]facts.Content {
	all := map[string]facts.Content{}
	for _, slice := range list {
		content := facts.ContentOf(&slice.Spec)
		pool := slice.Spec.Pool
		all[fmt.Sprintf("%s of %s@%d/%d", index(slice.Name), pool.Name, pool.Generation, pool.ResourceSliceCount)] = content
	}
	return all
}

// TestPlanAsUpstream drives the upstream controller and a Plan through the same
// random history of pools and of slices deleted by hand. After each step both
// have the same slices of the same generation, count and content, and took the
// same number of deletes, updates and creates to get there.
func TestPlanAsUpstream(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				theirs, ours := startUpstream(t), newModel(t)
				node := fakeNode("n", true)
				var pools []devices.Pool
				var story string
				for range 15 {
					pools = nextPools(random, pools)
					if random.IntN(4) == 0 {
						story += "removed " + removeOne(t, random, theirs, ours) + "; "
					}
					writes := ours.plan(node, pools...)
					ours.apply(writes)
					story += summary(writes) + "; "
					want := theirs.publish(pools)
					got := [3]int64{int64(len(writes.Delete)), int64(len(writes.Update)), int64(len(writes.Create))}
					require.Equal(t, want, got, story)
					require.Equal(t, published(theirs.list(t)), published(ours.list()), story)
				}
			})
		})
	}
}

// nextPools changes pools p and q at random: 1 to 4 slices, of which some
// change, are added or go, or none, or the pool goes.
func nextPools(random *rand.Rand, last []devices.Pool) []devices.Pool {
	versions := map[string][]int{}
	for _, pool := range last {
		contents, _ := pool.Slices(devices.CountersApart)
		for _, content := range contents {
			versions[pool.Name] = append(versions[pool.Name], int(*content.Devices[0].Attributes["v"].IntValue))
		}
	}
	var next []devices.Pool
	for _, name := range []string{"p", "q"} {
		now := versions[name]
		switch random.IntN(6) {
		case 0:
			now = nil
		case 1:
			now = now[:min(len(now), 1+random.IntN(4))]
		case 2, 3:
			now = append(now, random.IntN(100))
			now = now[:min(len(now), 4)]
		case 4, 5:
			for i := range now {
				if random.IntN(2) == 0 {
					now[i] = random.IntN(100)
				}
			}
		}
		if len(now) > 0 {
			next = append(next, poolOf(name, now...))
		}
	}
	return next
}

// removeOne deletes the slice of one place and pool on both sides. The upstream
// controller repairs after its sync delay, so it is given no time to.
func removeOne(t *testing.T, random *rand.Rand, theirs *upstream, ours *model) string {
	t.Helper()
	list := theirs.list(t)
	if len(list) == 0 {
		return "nothing"
	}
	victim := list[random.IntN(len(list))]
	for name, slice := range ours.slices {
		if index(name) == index(victim.Name) && slice.Spec.Pool.Name == victim.Spec.Pool.Name {
			delete(ours.slices, name)
		}
	}
	theirs.Remove(victim)
	synctest.Wait()
	return index(victim.Name) + " of " + victim.Spec.Pool.Name
}
