package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// readSlices reads what is to be published.
func (p *program) readSlices() ([]resourcev1.ResourceSlice, error) {
	text, err := os.ReadFile(p.slices)
	if err != nil {
		return nil, fmt.Errorf("read --slices: %w", err)
	}
	var list resourcev1.ResourceSliceList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("decode --slices %s: %w", p.slices, err)
	}
	return list.Items, nil
}

func (p *program) createSlice(ctx context.Context, slice *resourcev1.ResourceSlice) error {
	_, err := p.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create slice %s: %w", slice.Name, err)
	}
	return nil
}

// rawSlices publishes the slices as they come.
func (p *program) rawSlices() (writes, error) {
	slices, err := p.readSlices()
	return func(ctx context.Context) error {
		return fleet.InParallel(len(slices), func(i int) error { return p.createSlice(ctx, &slices[i]) })
	}, err
}

// watchingSlices publishes the slice of each node that it learns of, unless it
// sees that slice.
func (p *program) watchingSlices(ctx context.Context) (writes, error) {
	slices, err := p.readSlices()
	if err != nil {
		return nil, err
	}
	byNode := map[string]*resourcev1.ResourceSlice{}
	for i := range slices {
		byNode[*slices[i].Spec.NodeName] = &slices[i]
	}
	c, q := newCaches(p.client), newQueue()
	enqueue := func(node *corev1.Node) { q.Add(cache.MetaObjectToName(node)) }
	handler := coreinformers.NodeHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, node *corev1.Node) { enqueue(node) }}
	if _, err := c.nodes.TypedInformer().AddTypedEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	published := c.slices.Lister()
	if err := c.startAndSync(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		q.runWorkers(ctx, func(ctx context.Context, node cache.ObjectName) error {
			slice := byNode[node.Name]
			if slice == nil {
				return nil
			}
			if _, err := published.Get(slice.Name); err == nil {
				return nil
			}
			if err := p.createSlice(ctx, slice); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil // the cache is late
		})
		return nil
	}, nil
}
