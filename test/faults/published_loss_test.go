package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// loss is what was published of a pool and is not any more.
type loss struct {
	pool poolKey
	what string
}

// witness sees every change of a slice since it was called, past the proxies.
type witness struct {
	stop func()

	mu     sync.Mutex
	slices map[string]*resourcev1.ResourceSlice
	losses []loss
	// blind tells that it has missed something.
	blind bool
}

// witness begins to look at the slices.
func (c clients) witness(ctx context.Context) (*witness, error) {
	client := c.client.ResourceV1().ResourceSlices()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	seen := &witness{slices: map[string]*resourcev1.ResourceSlice{}}
	for i := range list.Items {
		seen.slices[list.Items[i].Name] = &list.Items[i]
	}
	ctx, cancel := context.WithCancel(ctx)
	watched, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch slices: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for one := range watched.ResultChan() {
			seen.note(one)
		}
	}()
	seen.stop = func() {
		cancel()
		<-done
	}
	return seen, nil
}

func (w *witness) note(one watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slice, ok := one.Object.(*resourcev1.ResourceSlice)
	if !ok {
		w.blind = w.blind || one.Type == watch.Error
		return
	}
	before := w.slices[slice.Name]
	if one.Type == watch.Deleted {
		delete(w.slices, slice.Name)
		w.losses = append(w.losses, loss{poolOf(slice), "slice " + slice.Name})
		return
	}
	w.slices[slice.Name] = slice
	if before == nil {
		return
	}
	if gone := missing(before, slice); len(gone) > 0 {
		w.losses = append(w.losses, loss{poolOf(slice), "devices " + strings.Join(gone, ", ") + " of slice " + slice.Name})
	}
}

// missing are the devices of a slice that its next version does not have.
func missing(before, after *resourcev1.ResourceSlice) []string {
	var names []string
	for i := range before.Spec.Devices {
		name := before.Spec.Devices[i].Name
		if !slices.ContainsFunc(after.Spec.Devices, func(d resourcev1.Device) bool { return d.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// unjustified are the losses of pools other than those that something concerned. It
// returns when all has been seen that there is now.
func (w *witness) unjustified(ctx context.Context, all *world, concerned map[poolKey]bool) ([]string, error) {
	if err := w.catchUp(ctx, all); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var wrong []string
	for _, one := range w.losses {
		if !concerned[one.pool] {
			wrong = append(wrong, fmt.Sprintf("retired: %+v has lost %s, though no valid document says so", one.pool, one.what))
		}
	}
	return wrong, nil
}

// lossesOf is how often a pool has lost a slice.
func (w *witness) lossesOf(pool poolKey) (times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.losses {
		if one.pool == pool {
			times++
		}
	}
	return times
}

func (w *witness) catchUp(ctx context.Context, all *world) error {
	return await(ctx, "the watch of slices lags", func(ctx context.Context) (bool, error) {
		list, err := all.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		versions := map[string]string{}
		for i := range list.Items {
			versions[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		seen := map[string]string{}
		for name, slice := range w.slices {
			seen[name] = slice.ResourceVersion
		}
		return w.blind || maps.Equal(seen, versions), nil
	})
}

// await waits until something is true, or will never be.
func await(ctx context.Context, otherwise string, is func(ctx context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	for {
		done, err := is(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil && err != nil:
			return fmt.Errorf("%s: %w", otherwise, err)
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", otherwise, ctx.Err())
		}
		sleep(ctx, lookAgain)
	}
}

// publishedPools are the slices by their pools. One whose label was taken off is nobody's,
// unless its pool is to exist.
func (f *found) publishedPools(wanted map[poolKey]wantedPool) map[poolKey][]resourcev1.ResourceSlice {
	published := map[poolKey][]resourcev1.ResourceSlice{}
	for i := range f.slices {
		_, owned := f.slices[i].Labels[managedBy]
		key := poolOf(&f.slices[i])
		if _, ok := wanted[key]; ok || owned {
			published[key] = append(published[key], f.slices[i])
		}
	}
	return published
}

// unwanted are the pools that are there and are not to exist, whether they were
// forgotten or not.
func (s *state) unwanted() []poolKey {
	var keys []poolKey
	wanted := s.wantedPools()
	for key := range s.publishedPools(wanted) {
		if _, ok := wanted[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}
