package slices

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

var sliceResource = resourcev1.SchemeGroupVersion.WithResource("resourceslices")

// server is a fake clientset that treats ResourceSlices as an API server does,
// where the fakes do not: resource versions, UIDs, preconditions, conflicts,
// generated names, dry runs, fields that are dropped and the times of taints.
type server struct {
	*fake.Clientset

	mu      sync.Mutex
	version int
	writes  []string
	// fail, if set, may refuse a write.
	fail func(verb, name string) error
	// admit, if set, changes what is stored.
	admit func(slice *resourcev1.ResourceSlice)
	// off are the feature gates that are off.
	off []string
	// countersWithDevices has counter sets in the slices of devices, as in
	// Kubernetes 1.34.
	countersWithDevices bool
	gitVersion          string
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Clientset: fake.NewClientset(objects...)}
	s.PrependReactor("*", "resourceslices", s.react)
	s.PrependWatchReactor("nodes", s.watchNodes)
	return s
}

// watchNodes watches the nodes with some labels, if it is asked to.
func (s *server) watchNodes(action clienttesting.Action) (bool, watch.Interface, error) {
	selector, err := labels.Parse(action.(clienttesting.WatchActionImpl).ListOptions.LabelSelector)
	if err != nil {
		return true, nil, err
	}
	source, err := s.Tracker().Watch(action.GetResource(), "")
	if err != nil {
		return true, nil, err
	}
	return true, watch.Filter(source, func(event watch.Event) (watch.Event, bool) {
		if node, is := event.Object.(*corev1.Node); is && !selector.Matches(labels.Set(node.Labels)) {
			event.Type = watch.Deleted
		}
		return event, true
	}), nil
}

// Discovery tells the version.
func (s *server) Discovery() discovery.DiscoveryInterfaces {
	return &versionOf{s.Clientset.Discovery(), s}
}

type versionOf struct {
	discovery.DiscoveryInterfaces
	server *server
}

func (v *versionOf) ServerVersionWithContext(context.Context) (*version.Info, error) {
	v.server.mu.Lock()
	defer v.server.mu.Unlock()
	return &version.Info{GitVersion: v.server.gitVersion}, nil
}

// refuse sets fail.
func (s *server) refuse(fail func(verb, name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		slice := a.GetObject().(*resourcev1.ResourceSlice).DeepCopy()
		return s.write("create", slice.Name, func() (runtime.Object, error) { return s.create(slice, a.GetCreateOptions()) })
	case clienttesting.UpdateActionImpl:
		slice := a.GetObject().(*resourcev1.ResourceSlice).DeepCopy()
		return s.write("update", slice.Name, func() (runtime.Object, error) { return s.update(slice) })
	case clienttesting.PatchActionImpl:
		return s.write("patch", a.GetName(), func() (runtime.Object, error) { return s.patch(a) })
	case clienttesting.DeleteActionImpl:
		return s.write("delete", a.GetName(), func() (runtime.Object, error) { return nil, s.delete(a) })
	}
	return false, nil, nil
}

// write counts a write and may refuse it. Dry runs are counted as such.
func (s *server) write(verb, name string, call func() (runtime.Object, error)) (bool, runtime.Object, error) {
	if name == "" {
		verb = "dry-run"
	}
	s.writes = append(s.writes, verb)
	if s.fail != nil {
		if err := s.fail(verb, name); err != nil {
			return true, nil, err
		}
	}
	object, err := call()
	return true, object, err
}

func (s *server) create(slice *resourcev1.ResourceSlice, options metav1.CreateOptions) (runtime.Object, error) {
	s.drop(slice)
	if reason := s.invalid(&slice.Spec); reason != "" {
		return nil, apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceSlice").GroupKind(), slice.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec"), nil, reason)})
	}
	addTimes(slice, time.Now())
	s.version++
	slice.ResourceVersion = strconv.Itoa(s.version)
	slice.UID = types.UID("slice-" + slice.ResourceVersion)
	if slice.Name == "" {
		slice.Name = slice.GenerateName + slice.ResourceVersion
	}
	if len(options.DryRun) > 0 {
		return slice, nil
	}
	return slice.DeepCopy(), s.Tracker().Create(sliceResource, slice, "")
}

// invalid applies the rules that tell API servers from each other.
func (s *server) invalid(spec *resourcev1.ResourceSliceSpec) string {
	if spec.NodeName == nil && spec.NodeSelector == nil && spec.AllNodes == nil && spec.PerDeviceNodeSelection == nil {
		return "it is for no node"
	}
	if s.countersWithDevices == (len(spec.SharedCounters) == 0) && slices.ContainsFunc(spec.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 }) {
		return "counters are in the wrong place"
	}
	for i := range spec.Devices {
		for _, attribute := range spec.Devices[i].Attributes {
			if apiequality.Semantic.DeepEqual(attribute, resourcev1.DeviceAttribute{}) {
				return "exactly one value must be specified"
			}
		}
	}
	return ""
}

func (s *server) drop(slice *resourcev1.ResourceSlice) {
	if s.admit != nil {
		s.admit(slice)
	}
	off := func(gate string) bool { return slices.Contains(s.off, gate) }
	if off("DRAPartitionableDevices") {
		slice.Spec.SharedCounters, slice.Spec.PerDeviceNodeSelection = nil, nil
	}
	if off("DRAOptionalNodeOperations") {
		slice.Spec.SkipNodeOperations = nil
	}
	for i := range slice.Spec.Devices {
		dropOf(&slice.Spec.Devices[i], off)
	}
}

func dropOf(device *resourcev1.Device, off func(gate string) bool) {
	if off("DRAPartitionableDevices") {
		device.ConsumesCounters, device.NodeName, device.AllNodes = nil, nil, nil
	}
	for name, attribute := range device.Attributes {
		if off("DRAListTypeAttributes") && devices.IsList(attribute) {
			device.Attributes[name] = resourcev1.DeviceAttribute{}
		}
	}
	if off("DRADeviceTaints") {
		device.Taints = nil
	}
	if off("DRAConsumableCapacity") {
		device.AllowMultipleAllocations = nil
	}
	if off("DRADeviceBindingConditions") {
		device.BindsToNode, device.BindingConditions, device.BindingFailureConditions = nil, nil, nil
	}
}

// addTimes gives a time to the taints that have none.
func addTimes(slice *resourcev1.ResourceSlice, now time.Time) {
	for i := range slice.Spec.Devices {
		for j := range slice.Spec.Devices[i].Taints {
			if taint := &slice.Spec.Devices[i].Taints[j]; taint.TimeAdded == nil {
				taint.TimeAdded = &metav1.Time{Time: now.Truncate(time.Second)}
			}
		}
	}
}

func (s *server) get(name string) (*resourcev1.ResourceSlice, error) {
	object, err := s.Tracker().Get(sliceResource, "", name)
	if err != nil {
		return nil, err
	}
	return object.(*resourcev1.ResourceSlice), nil
}

func (s *server) update(slice *resourcev1.ResourceSlice) (runtime.Object, error) {
	current, err := s.get(slice.Name)
	if err != nil {
		return nil, err
	}
	if slice.UID != current.UID || slice.ResourceVersion != current.ResourceVersion {
		return nil, apierrors.NewConflict(sliceResource.GroupResource(), slice.Name, fmt.Errorf("it has changed"))
	}
	s.drop(slice)
	addTimes(slice, time.Now())
	s.version++
	slice.ResourceVersion = strconv.Itoa(s.version)
	return slice.DeepCopy(), s.Tracker().Update(sliceResource, slice, "")
}

func (s *server) patch(action clienttesting.PatchActionImpl) (runtime.Object, error) {
	if action.GetPatchType() != types.MergePatchType {
		return nil, fmt.Errorf("unexpected patch type %s", action.GetPatchType())
	}
	current, err := s.get(action.GetName())
	if err != nil {
		return nil, err
	}
	patched, err := merge(current, action.GetPatch())
	if err != nil {
		return nil, err
	}
	return s.update(patched)
}

// merge applies a JSON merge patch as the API server does.
func merge(slice *resourcev1.ResourceSlice, patch []byte) (*resourcev1.ResourceSlice, error) {
	before, err := json.Marshal(slice)
	if err != nil {
		return nil, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, err
	}
	merged := &resourcev1.ResourceSlice{}
	return merged, json.Unmarshal(after, merged)
}

func (s *server) delete(action clienttesting.DeleteActionImpl) error {
	current, err := s.get(action.GetName())
	if err != nil {
		return err
	}
	if p := action.DeleteOptions.Preconditions; p != nil && (*p.UID != current.UID || *p.ResourceVersion != current.ResourceVersion) {
		return apierrors.NewConflict(sliceResource.GroupResource(), current.Name, fmt.Errorf("precondition failed"))
	}
	return s.Tracker().Delete(sliceResource, "", current.Name)
}

// takeWrites counts the writes since the last call, by verb.
func (s *server) takeWrites() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, verb := range s.writes {
		counts[verb]++
	}
	s.writes = nil
	return counts
}

// list returns the slices in the order of their names.
func (s *server) list(t testing.TB) []resourcev1.ResourceSlice {
	t.Helper()
	object, err := s.Tracker().List(sliceResource, resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"), "")
	require.NoError(t, err)
	items := object.(*resourcev1.ResourceSliceList).Items
	slices.SortFunc(items, func(a, b resourcev1.ResourceSlice) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return items
}

// edit changes a slice as a person would.
func (s *server) edit(t testing.TB, name string, change func(*resourcev1.ResourceSlice)) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slice, err := s.get(name)
	require.NoError(t, err)
	slice = slice.DeepCopy()
	change(slice)
	_, err = s.update(slice)
	require.NoError(t, err)
}

// remove deletes a slice as a person would.
func (s *server) remove(t testing.TB, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NoError(t, s.Tracker().Delete(sliceResource, "", name))
}
