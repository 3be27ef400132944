// Package apitest has a fake API server for tests.
package apitest

import (
	"errors"
	"strconv"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// Server is a fake clientset that treats objects as an API server does, where
// client-go's fakes do not: resource versions, UIDs, preconditions, conflicts,
// generated names, dry runs, writes that change nothing, patches of all types, the
// subresource in managedFields, and the selectors of watches.
type Server struct {
	*fake.Clientset
	// Mu is held during each call but watches.
	Mu sync.Mutex
	// Name names a call. One without a name is neither kept nor refused.
	Name func(action clienttesting.Action) string
	// Admit changes or refuses what a call is to store.
	Admit func(object runtime.Object) error
	// Lags are how late the watches that begin now are, by resource.
	Lags map[string]time.Duration

	tracker clienttesting.ObjectTracker
	version int
	calls   []string
	refuse  func(call string) error
}

// New makes a server with objects.
func New(objects ...runtime.Object) *Server {
	s := &Server{
		Clientset: &fake.Clientset{},
		Name:      func(clienttesting.Action) string { return "" },
		Admit:     func(runtime.Object) error { return nil },
		Lags:      map[string]time.Duration{},
		tracker:   clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
	}
	s.AddReactor("*", "*", s.react)
	s.AddReactor("*", "*", clienttesting.ObjectReaction(s.tracker))
	s.AddWatchReactor("*", s.watch)
	for _, object := range objects {
		s.Add(object)
	}
	return s
}

// Refuse has calls fail, until it is called with nil.
func (s *Server) Refuse(refuse func(call string) error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.refuse = refuse
}

// TakeCalls returns the calls since the last time, those that are wanted.
func (s *Server) TakeCalls(wanted func(call string) bool) []string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var taken, left []string
	for _, call := range s.calls {
		if wanted(call) {
			taken = append(taken, call)
		} else {
			left = append(left, call)
		}
	}
	s.calls = left
	return taken
}

// call notes a call and may refuse it.
func (s *Server) call(action clienttesting.Action) error {
	call := s.Name(action)
	if call == "" {
		return nil
	}
	s.calls = append(s.calls, call)
	if s.refuse != nil {
		return s.refuse(call)
	}
	return nil
}

func (s *Server) react(action clienttesting.Action) (handled bool, object runtime.Object, err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.call(action); err != nil {
		return true, nil, err
	}
	switch a := action.(type) {
	case clienttesting.ListActionImpl:
		object, err = s.list(&a)
	case clienttesting.CreateActionImpl:
		object, err = s.create(&a)
	case clienttesting.UpdateActionImpl:
		object, err = s.update(&a)
	case clienttesting.PatchActionImpl:
		object, err = s.patch(&a)
	case clienttesting.DeleteActionImpl:
		err = s.delete(&a)
	default:
		return false, nil, nil
	}
	return true, object, err
}

func (s *Server) create(action *clienttesting.CreateActionImpl) (runtime.Object, error) {
	object := action.Object.DeepCopyObject()
	if err := s.Admit(object); err != nil {
		return nil, err
	}
	version := s.number(object)
	if m := metaOf(object); m.GetUID() == "" {
		m.SetUID(types.UID("uid-" + version))
	}
	if m := metaOf(object); m.GetName() == "" {
		m.SetName(m.GetGenerateName() + version)
	}
	if len(action.CreateOptions.DryRun) > 0 {
		return object, nil
	}
	return object, s.tracker.Create(action.Resource, object, action.Namespace)
}

func (s *Server) update(action *clienttesting.UpdateActionImpl) (runtime.Object, error) {
	live, err := s.tracker.Get(action.Resource, action.Namespace, metaOf(action.Object).GetName())
	if err != nil {
		return nil, err
	}
	return s.replace(action.Resource, live, action.Object.DeepCopyObject())
}

func (s *Server) delete(action *clienttesting.DeleteActionImpl) error {
	live, err := s.tracker.Get(action.Resource, action.Namespace, action.Name)
	if err != nil {
		return err
	}
	if p := action.DeleteOptions.Preconditions; p != nil {
		if err := expect(action.Resource, metaOf(live), *p.UID, *p.ResourceVersion); err != nil {
			return err
		}
	}
	return s.tracker.Delete(action.Resource, action.Namespace, action.Name)
}

// replace stores what a call makes of an object, unless the call is about an older one.
func (s *Server) replace(resource schema.GroupVersionResource, live, object runtime.Object) (runtime.Object, error) {
	if err := expect(resource, metaOf(live), metaOf(object).GetUID(), metaOf(object).GetResourceVersion()); err != nil {
		return nil, err
	}
	if err := s.Admit(object); err != nil {
		return nil, err
	}
	return s.store(resource, live, object)
}

// expect reports a conflict if an object is not the one that a call is about.
func expect(resource schema.GroupVersionResource, live metav1.Object, uid types.UID, version string) error {
	switch {
	case uid != "" && uid != live.GetUID():
		return apierrors.NewConflict(resource.GroupResource(), live.GetName(), errors.New("precondition failed: UID"))
	case version != "" && version != live.GetResourceVersion():
		return apierrors.NewConflict(resource.GroupResource(), live.GetName(), errors.New("it has changed"))
	}
	return nil
}

// store stores an object under a new resource version if it has changed.
func (s *Server) store(resource schema.GroupVersionResource, live, object runtime.Object) (runtime.Object, error) {
	if equalButTimes(live, object) {
		return live, nil
	}
	s.number(object)
	return object, s.tracker.Update(resource, object, metaOf(live).GetNamespace())
}

// number gives an object the next resource version.
func (s *Server) number(object runtime.Object) string {
	s.version++
	version := strconv.Itoa(s.version)
	metaOf(object).SetResourceVersion(version)
	return version
}

// equalButTimes passes over the times in managedFields, as the API server does.
func equalButTimes(a, b runtime.Object) bool {
	a, b = a.DeepCopyObject(), b.DeepCopyObject()
	for _, object := range []runtime.Object{a, b} {
		fields := metaOf(object).GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	must(err)
	return accessor
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
