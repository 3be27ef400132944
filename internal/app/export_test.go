package app

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
)

// RunOn runs a sidecar on clients of a test until ctx ends.
func RunOn(ctx context.Context, o *Options, client kubernetes.Interface, objects dynamic.Interface) error {
	store, err := newStore(ctx, o)
	if err != nil {
		return err
	}
	owner, err := newOwner(o, nil)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster()
	defer events.Shutdown()
	return newSidecar(o, client, objects, store, owner, events).runParts(ctx)
}
