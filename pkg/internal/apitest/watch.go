package apitest

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// fieldsOf are the fields that an object is selected by.
func fieldsOf(object runtime.Object) fields.Set {
	set := fields.Set{"metadata.name": metaOf(object).GetName(), "metadata.namespace": metaOf(object).GetNamespace()}
	switch object := object.(type) {
	case *corev1.Pod:
		set["spec.nodeName"] = object.Spec.NodeName
	case *resourcev1.ResourceSlice:
		set[resourcev1.ResourceSliceSelectorDriver] = object.Spec.Driver
		if object.Spec.NodeName != nil {
			set[resourcev1.ResourceSliceSelectorNodeName] = *object.Spec.NodeName
		}
	}
	return set
}

// list selects by fields. Clients select by labels themselves.
func (s *Server) list(action *clienttesting.ListActionImpl) (runtime.Object, error) {
	selector, err := fields.ParseSelector(action.ListOptions.FieldSelector)
	if err != nil {
		return nil, err
	}
	list, err := s.tracker.List(action.Resource, action.Kind, action.Namespace)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	must(err)
	items = slices.DeleteFunc(items, func(object runtime.Object) bool { return !selector.Matches(fieldsOf(object)) })
	return list, meta.SetList(list, items)
}

// watch tells that an object has gone when it leaves a selection by labels.
func (s *Server) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	options := action.(clienttesting.WatchActionImpl).ListOptions
	byLabels, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return true, nil, err
	}
	byFields, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return true, nil, err
	}
	source, err := s.tracker.Watch(action.GetResource(), action.GetNamespace(), options)
	if err != nil {
		return true, nil, err
	}
	source = watch.Filter(source, func(event watch.Event) (watch.Event, bool) {
		if !byLabels.Matches(labels.Set(metaOf(event.Object).GetLabels())) {
			event.Type = watch.Deleted
		}
		return event, byFields.Matches(fieldsOf(event.Object))
	})
	lags := s.Lags
	r := &relay{source: source, result: make(chan watch.Event), done: make(chan struct{}), lag: func() time.Duration {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return lags[action.GetResource().Resource]
	}}
	go r.run()
	return true, r, nil
}

// relay is a watch that may be late.
type relay struct {
	source watch.Interface
	result chan watch.Event
	done   chan struct{}
	stop   sync.Once
	lag    func() time.Duration
}

func (r *relay) run() {
	for event := range r.source.ResultChan() {
		if lag := r.lag(); lag > 0 {
			select {
			case <-time.After(lag):
			case <-r.done:
			}
		}
		select {
		case r.result <- event:
		case <-r.done:
		}
	}
}

func (r *relay) ResultChan() <-chan watch.Event { return r.result }

func (r *relay) Stop() {
	r.stop.Do(func() {
		close(r.done)
		r.source.Stop()
	})
}
