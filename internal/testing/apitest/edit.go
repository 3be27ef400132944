package apitest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What follows changes objects as the scheduler, controllers and people do, and
// counts as no call.

// Object is a pointer to an object of a type.
type Object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// Get returns an object that there is. It takes no lock.
func Get[T any, P Object[T]](s *Server, namespace, name string) P {
	object, err := s.objects.Get(resourceOf(P(new(T))), namespace, name)
	must(err)
	return object.(P)
}

// Add adds an object.
func (s *Server) Add(object runtime.Object) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kindOf(object)) // which managed fields need
	s.objects.number(object)
	must(s.objects.ObjectTracker.Create(resourceOf(object), object, metaOf(object).GetNamespace()))
}

// Restore puts an object back as it was, with the version of then, as a restore of etcd from a
// backup does.
func (s *Server) Restore(object runtime.Object) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	must(s.objects.ObjectTracker.Update(resourceOf(object), object.DeepCopyObject(), metaOf(object).GetNamespace()))
}

// Remove deletes an object.
func (s *Server) Remove(object runtime.Object) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	must(s.objects.Delete(resourceOf(object), metaOf(object).GetNamespace(), metaOf(object).GetName()))
}

// Edit changes an object, and keeps its managedFields right.
func Edit[T any, P Object[T]](s *Server, namespace, name string, change func(object P)) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	live := Get[T, P](s, namespace, name)
	object := live.DeepCopyObject()
	change(object.(P))
	if len(live.GetManagedFields()) > 0 {
		manager, err := managerOf(live, "status")
		must(err)
		object, err = manager.Update(live, object, "someone")
		must(err)
	}
	must(s.objects.store(resourceOf(live), live, object))
}

func resourceOf(object runtime.Object) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(kindOf(object))
	return resource
}
