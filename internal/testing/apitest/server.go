// Package apitest has a fake API server for tests.
package apitest

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The second handler of errors sleeps where the last error was less than a millisecond ago, in
// the whole process. Of tests in bubbles each has its own clock, so an informer that cannot list
// would sleep until the clock of some other test, or of the machine.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

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

	objects *objects
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
	}
	s.objects = newObjects(func(object runtime.Object) error { return s.Admit(object) })
	s.AddReactor("*", "*", s.react)
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
		return true, object, err
	case clienttesting.DeleteCollectionActionImpl:
		return true, nil, s.deleteSlices(&a)
	case clienttesting.CreateActionImpl:
		if len(a.CreateOptions.DryRun) > 0 {
			return true, a.Object, s.objects.prepare(a.Object)
		}
	case clienttesting.UpdateActionImpl:
		object, err = s.objects.update(&a)
		return true, object, err
	case clienttesting.PatchActionImpl:
		if a.PatchType == types.ApplyPatchType {
			object, err = s.objects.apply(&a)
			return true, object, err
		}
	}
	handled, object, err = clienttesting.ObjectReaction(s.objects)(action)
	patch, ok := action.(clienttesting.PatchActionImpl)
	if ok && err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown { // the patch does not fit
		err = apierrors.NewInvalid(schema.GroupKind{Group: patch.Resource.Group}, patch.Name, nil)
	}
	return handled, object, err
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
