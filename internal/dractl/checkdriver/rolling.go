package checkdriver

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
)

// awaitTakeover waits until the kubelet calls the right plugin, and has it prepare a claim.
func (w *world) awaitTakeover(ctx context.Context, ended func() error, right func(now *plugin.Plugin) bool) error {
	err := waitUntil(ctx, func() (string, error) {
		if right(w.calledPlugin()) {
			return "", nil
		}
		return "it is not the one that the kubelet calls" + w.lastProblem(), ended()
	})
	if err != nil {
		return err
	}
	claims, _, err := w.prepareNewClaims(ctx, 1)
	if err != nil {
		return err
	}
	return errors.Join(w.unprepareClaims(ctx, claims...), w.deleteClaim(ctx, claims[0]))
}

// watchForGap watches the slices. The function that it returns ends the watch, and fails if at any time there
// was no slice.
func (w *world) watchForGap(ctx context.Context) (gap func() error, err error) {
	list, err := w.client.ResourceV1().ResourceSlices().List(ctx, w.nodeSliceOptions(w.driver))
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		there[list.Items[i].UID] = true
	}
	options := w.nodeSliceOptions(w.driver)
	options.ResourceVersion = list.ResourceVersion
	watcher, err := w.client.ResourceV1().ResourceSlices().Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch slices: %w", err)
	}
	found := make(chan error, 1)
	go func() { found <- findGap(there, watcher.ResultChan()) }()
	return func() error {
		watcher.Stop()
		return <-found
	}, nil
}

// findGap reads events until their end.
func findGap(there map[types.UID]bool, events <-chan watch.Event) (gap error) {
	for event := range events {
		slice, ok := event.Object.(*resourcev1.ResourceSlice)
		if !ok {
			continue
		}
		there[slice.UID] = true
		if event.Type == watch.Deleted {
			delete(there, slice.UID)
		}
		if len(there) == 0 {
			gap = errors.New("for a time there was no slice")
		}
	}
	return gap
}
