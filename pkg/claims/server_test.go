package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

var (
	podResource   = corev1.SchemeGroupVersion.WithResource("pods")
	claimResource = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
	nodeResource  = corev1.SchemeGroupVersion.WithResource("nodes")
	sliceResource = resourcev1.SchemeGroupVersion.WithResource("resourceslices")
)

// server is a fake clientset that treats Pods and ResourceClaims as an API
// server does, where the fakes do not: resource versions, writes that change
// nothing, the subresource in managedFields, UIDs in patches, the field selector
// of Pods, and fields that are dropped.
type server struct {
	*fake.Clientset
	tracker clienttesting.ObjectTracker
	// fields merges what is applied to the status of claims.
	fields *managedfields.FieldManager

	mu      sync.Mutex
	version int
	// calls are all calls but those of the caches: "prepare c", "get pod p".
	calls []string
	// refuse, if set, may fail a call.
	refuse func(call string) error
	// dropHealth has the server behave as one without ResourceHealthStatus.
	dropHealth bool
	// lags are those of watches that begin now.
	*lags
}

func newServer(objects ...runtime.Object) *server {
	s := &server{
		Clientset: &fake.Clientset{},
		lags:      &lags{},
		tracker:   clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
	}
	var err error
	s.fields, err = managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, noDefaults{}, scheme.Scheme,
		resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"), resourcev1.SchemeGroupVersion, "status", nil)
	if err != nil {
		panic(err)
	}
	s.AddReactor("patch", "*", s.patch)
	s.AddReactor("get", "*", s.read)
	s.AddReactor("list", "resourceslices", s.read)
	s.AddReactor("list", "pods", s.listPods)
	s.AddReactor("*", "*", clienttesting.ObjectReaction(s.tracker))
	s.AddWatchReactor("*", s.watch)
	for _, object := range objects {
		s.add(object)
	}
	return s
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// call notes a call and may fail it.
func (s *server) call(words ...string) error {
	call := strings.TrimSpace(strings.Join(words, " "))
	s.calls = append(s.calls, call)
	if s.refuse != nil {
		return s.refuse(call)
	}
	return nil
}

func (s *server) read(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := ""
	if get, ok := action.(clienttesting.GetActionImpl); ok {
		name = get.Name
	}
	err := s.call(action.GetVerb(), action.GetResource().Resource, name)
	return err != nil, nil, err
}

func (s *server) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	patch := action.(clienttesting.PatchActionImpl)
	switch {
	case patch.GetSubresource() != "status":
	case patch.GetResource() == podResource:
		object, err := s.patchPod(patch)
		return true, object, err
	case patch.GetResource() == claimResource && patch.GetPatchType() == types.ApplyPatchType:
		object, err := s.applyClaim(patch)
		return true, object, err
	}
	return true, nil, fmt.Errorf("unexpected patch of %s", patch.GetResource())
}

func (s *server) patchPod(action clienttesting.PatchActionImpl) (runtime.Object, error) {
	if err := s.call(podOperation(action), action.Name); err != nil {
		return nil, err
	}
	object, err := s.tracker.Get(podResource, action.Namespace, action.Name)
	if err != nil {
		return nil, err
	}
	live := object.(*corev1.Pod)
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	after, err := patched(before, action)
	if err != nil {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), live.Name, nil)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(after, pod); err != nil {
		return nil, err
	}
	if pod.UID != live.UID {
		return nil, apierrors.NewConflict(podResource.GroupResource(), live.Name, errors.New("precondition failed: UID"))
	}
	if pod.ResourceVersion != live.ResourceVersion {
		return nil, apierrors.NewConflict(podResource.GroupResource(), live.Name, errors.New("it has changed"))
	}
	for i := range pod.Status.ContainerStatuses {
		if s.dropHealth {
			pod.Status.ContainerStatuses[i].AllocatedResourcesStatus = nil
		}
	}
	return s.store(live, pod)
}

// podOperation tells the writes of a Pod apart by what is in them.
func podOperation(action clienttesting.PatchActionImpl) string {
	if action.GetPatchType() == types.JSONPatchType {
		return "health"
	}
	var patch statusPatch
	if err := json.Unmarshal(action.Patch, &patch); err != nil {
		return err.Error()
	}
	switch ready := readyToStart(&corev1.Pod{Status: patch.Status}); {
	case ready == corev1.ConditionTrue:
		return "ready"
	case patch.Status.Phase != "":
		return "waiting"
	}
	return "unprepared"
}

func patched(before []byte, action clienttesting.PatchActionImpl) ([]byte, error) {
	if action.GetPatchType() == types.StrategicMergePatchType {
		return strategicpatch.StrategicMergePatch(before, action.Patch, &corev1.Pod{})
	}
	patch, err := jsonpatch.DecodePatch(action.Patch)
	if err != nil {
		return nil, err
	}
	return patch.Apply(before)
}

func (s *server) applyClaim(action clienttesting.PatchActionImpl) (runtime.Object, error) {
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(action.Patch, &applied.Object); err != nil {
		return nil, err
	}
	manager := action.PatchOptions.FieldManager
	if err := s.call(claimOperation(manager, applied), action.Name); err != nil {
		return nil, err
	}
	object, err := s.tracker.Get(claimResource, action.Namespace, action.Name)
	if err != nil {
		return nil, err
	}
	live := object.(*resourcev1.ResourceClaim)
	if uid := applied.GetUID(); uid != "" && uid != live.UID {
		return nil, apierrors.NewConflict(claimResource.GroupResource(), live.Name, errors.New("precondition failed: UID"))
	}
	if version := applied.GetResourceVersion(); version != "" && version != live.ResourceVersion {
		return nil, apierrors.NewConflict(claimResource.GroupResource(), live.Name, errors.New("it has changed"))
	}
	merged, err := s.fields.Apply(live, applied, manager, true)
	if err != nil {
		return nil, err
	}
	claim := merged.(*resourcev1.ResourceClaim)
	if err := validate(claim); err != nil {
		return nil, err
	}
	return s.store(live, claim)
}

func claimOperation(manager string, applied *unstructured.Unstructured) string {
	entries, _, _ := unstructured.NestedSlice(applied.Object, "status", "devices")
	switch {
	case manager == fieldManager && len(entries) > 0:
		return "prepare"
	case manager == fieldManager:
		return "withdraw"
	case manager == bindingManager && len(entries) > 0:
		return "bind"
	}
	return "withdraw-" + manager
}

// validate refuses entries of devices that are not allocated.
func validate(claim *resourcev1.ResourceClaim) error {
	for i := range claim.Status.Devices {
		id := entryID(&claim.Status.Devices[i])
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
			func(r resourcev1.DeviceRequestAllocationResult) bool { return resultID(&r) == id }) {
			return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), claim.Name, nil)
		}
	}
	return nil
}

// store stores a Pod or claim under a new resource version if it has changed.
func (s *server) store(live, object runtime.Object) (runtime.Object, error) {
	if live != nil && equalButTimes(live, object) {
		return live, nil
	}
	resource := resourceOf(object)
	meta := metaOf(object)
	s.version++
	meta.SetResourceVersion(strconv.Itoa(s.version))
	return object, s.tracker.Update(resource, object, meta.GetNamespace())
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

// bound is the one field selector that the server knows.
const bound = "spec.nodeName!="

// listPods leaves out Pods that are not bound if it is asked to.
func (s *server) listPods(action clienttesting.Action) (bool, runtime.Object, error) {
	object, err := s.tracker.List(podResource, corev1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	list := object.(*corev1.PodList)
	if action.(clienttesting.ListActionImpl).ListOptions.FieldSelector == bound {
		list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
	}
	return true, list, nil
}

func (s *server) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	options := action.(clienttesting.WatchActionImpl).ListOptions
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return true, nil, err
	}
	source, err := s.tracker.Watch(action.GetResource(), action.GetNamespace(), options)
	if err != nil {
		return true, nil, err
	}
	r := &relay{result: make(chan watch.Event), done: make(chan struct{}), bound: options.FieldSelector == bound}
	r.source = watch.Filter(source, func(event watch.Event) (watch.Event, bool) {
		if node, is := event.Object.(*corev1.Node); is && !selector.Matches(labels.Set(node.Labels)) {
			event.Type = watch.Deleted
		}
		return event, true
	})
	late := s.lags
	r.lag = func() time.Duration {
		s.mu.Lock()
		defer s.mu.Unlock()
		return map[schema.GroupVersionResource]time.Duration{claimResource: late.lag, podResource: late.podLag}[action.GetResource()]
	}
	go r.run()
	return true, r, nil
}

// relay is a watch that may be late, and may leave out Pods that are not bound.
type relay struct {
	bound  bool
	source watch.Interface
	result chan watch.Event
	done   chan struct{}
	stop   sync.Once
	lag    func() time.Duration
}

func (r *relay) run() {
	for event := range r.source.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && r.bound && pod.Spec.NodeName == "" {
			continue
		}
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
