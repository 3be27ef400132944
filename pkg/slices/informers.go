package slices

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// byScope indexes slices by what they are of.
const byScope = "scope"

// newSliceInformer watches the slices that kwok-dra owns.
func newSliceInformer(client kubernetes.Interface) cache.TypedSharedIndexInformer[*Observed] {
	indexers := cache.TypedIndexersToIndexers(cache.TypedIndexers[*Observed]{
		byScope: func(slice *Observed) ([]string, error) { return []string{slice.scope().String()}, nil },
	})
	ours := labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}.String()
	informer := resourceinformers.NewFilteredResourceSliceInformer(client, 0, indexers,
		func(options *metav1.ListOptions) { options.LabelSelector = ours })
	cached.MustTransform(informer, observe)
	return cache.NewTypedSharedIndexInformer[*Observed](informer)
}

func (p *Publisher) addHandlers() error {
	nodes, err := p.nodes.Handle(func(update lifecycle.Update) { p.nodeChanged(update.Name) })
	if err != nil {
		return err
	}
	slices, err := p.slices.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*Observed]{
		AddFunc:    p.sliceChanged,
		UpdateFunc: func(_, slice *Observed) { p.sliceChanged(slice) },
		DeleteFunc: p.sliceDeleted,
	})
	if err != nil {
		return fmt.Errorf("watch slices: %w", err)
	}
	p.synced = []cache.DoneChecker{nodes, slices.HasSyncedChecker()}
	return nil
}

func (p *Publisher) nodeChanged(name string) {
	p.changes.Add(1)
	p.contests.renew(nodeScope(name))
	p.putBackChanged(nodeScope(name), time.Now())
	if p.nodes.Has(name) {
		p.know(name) // it may leave the selection before it is looked at
	}
	p.loop.Add(nodeScope(name))
}

// takeChanged returns the time of the scope's first event that has not been
// dealt with, or zero.
func (p *Publisher) takeChanged(of scope) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.changed[of]
	delete(p.changed, of)
	return since
}

func (p *Publisher) putBackChanged(of scope, since time.Time) {
	if since.IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if earlier, ok := p.changed[of]; !ok || since.Before(earlier) {
		p.changed[of] = since
	}
}

func (p *Publisher) sliceChanged(slice *Observed) {
	p.changes.Add(1)
	again, others := p.pending.saw(slice.scope(), slice.Name, slice.ResourceVersion)
	if others {
		p.contests.disturb(slice.scope())
	}
	if again {
		p.loop.Add(slice.scope())
	}
}

func (p *Publisher) sliceDeleted(deleted cache.DeletedObject[*Observed]) {
	p.changes.Add(1)
	slice := deleted.OptionalObj
	if slice == nil {
		return
	}
	if !p.pending.sawDeleted(slice.scope(), slice.Name) {
		p.contests.disturb(slice.scope())
	}
	p.loop.Add(slice.scope())
}

// enqueueAll queues every node, and all that has slices or is to have some.
func (p *Publisher) enqueueAll() {
	p.contests.renewAll()
	for _, name := range p.nodes.Names() {
		p.loop.Add(nodeScope(name))
	}
	for _, object := range p.slices.GetStore().List() {
		p.loop.Add(object.(*Observed).scope())
	}
	if set := p.config.Current(); set != nil {
		for _, t := range set.Shared() {
			p.loop.Add(sharedScope(t))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for of := range p.shared { // its template may be gone, or name another pool
		p.loop.Add(of)
	}
}

// existing are the slices of a scope, by what the cache says.
func (p *Publisher) existing(of scope) ([]*Observed, error) {
	existing, err := p.slices.GetTypedIndexer().ByTypedIndex(byScope, of.String())
	if err != nil {
		return nil, fmt.Errorf("list slices of %s: %w", of, err)
	}
	return existing, nil
}
