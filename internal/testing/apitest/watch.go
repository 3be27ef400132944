package apitest

import (
	"slices"
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
	list, err := s.objects.List(action.Resource, action.Kind, action.Namespace)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	must(err)
	items = slices.DeleteFunc(items, func(object runtime.Object) bool { return !selector.Matches(fieldsOf(object)) })
	return list, meta.SetList(list, items)
}

// deleteSlices deletes slices, the only kind of which clients delete collections.
func (s *Server) deleteSlices(action *clienttesting.DeleteCollectionActionImpl) error {
	list, err := s.objects.List(action.Resource, resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), "")
	if err != nil {
		return err
	}
	for _, slice := range list.(*resourcev1.ResourceSliceList).Items {
		selected := action.ListRestrictions.Fields.Matches(fieldsOf(&slice)) && action.ListRestrictions.Labels.Matches(labels.Set(slice.Labels))
		if !selected {
			continue
		}
		if err := s.objects.Delete(action.Resource, "", slice.Name); err != nil {
			return err
		}
	}
	return nil
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
	source, err := s.objects.Watch(action.GetResource(), action.GetNamespace(), options)
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
	return true, late(source, func() time.Duration {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return lags[action.GetResource().Resource]
	}), nil
}

// late passes on the events of a watch, as late as lag says.
func late(source watch.Interface, lag func() time.Duration) watch.Interface {
	events := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(events)
	go func() {
		<-proxy.StopChan()
		source.Stop()
	}()
	go func() {
		for event := range source.ResultChan() {
			if wait := lag(); wait > 0 {
				select {
				case <-time.After(wait):
				case <-proxy.StopChan():
				}
			}
			select {
			case events <- event:
			case <-proxy.StopChan():
			}
		}
	}()
	return proxy
}
