package resourceslice

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/slicetest"
)

// server is an API server of some version, which validates ResourceSlices, drops
// fields of them, and gives taints their times.
type server struct {
	*apitest.Server

	// change, if set, changes what is stored.
	change func(slice *resourcev1.ResourceSlice)
	// off are the feature gates that are off.
	off []string
	// countersWithDevices has counter sets in the slices of devices, as in
	// Kubernetes 1.34.
	countersWithDevices bool
	gitVersion          string
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Server: apitest.New(objects...)}
	s.Name, s.Admit = write, s.admit
	return s
}

// write names the writes of slices: "create a". Dry runs are named as such.
func write(action clienttesting.Action) string {
	if action.GetResource().Resource != "resourceslices" {
		return ""
	}
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		if len(a.CreateOptions.DryRun) > 0 {
			return "dry-run"
		}
		return "create " + a.Object.(*resourcev1.ResourceSlice).Name
	case clienttesting.UpdateActionImpl:
		return "update " + a.Object.(*resourcev1.ResourceSlice).Name
	case clienttesting.PatchActionImpl:
		return "patch " + a.Name
	case clienttesting.DeleteActionImpl:
		return "delete " + a.Name
	}
	return ""
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
	v.server.Mu.Lock()
	defer v.server.Mu.Unlock()
	return &version.Info{GitVersion: v.server.gitVersion}, nil
}

func (s *server) admit(object runtime.Object) error {
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok {
		return nil
	}
	s.drop(slice)
	if reason := s.invalid(&slice.Spec); reason != "" {
		return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceSlice").GroupKind(), slice.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec"), nil, reason)})
	}
	slicetest.AddTimes(slice, time.Now())
	return nil
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
	if s.change != nil {
		s.change(slice)
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

// takeWrites counts the writes since the last call, by verb.
func (s *server) takeWrites() map[string]int {
	counts := map[string]int{}
	for _, call := range s.TakeCalls(func(string) bool { return true }) {
		verb, _, _ := strings.Cut(call, " ")
		counts[verb]++
	}
	return counts
}

// list returns the slices in the order of their names.
func (s *server) list(t testing.TB) []resourcev1.ResourceSlice {
	t.Helper()
	list, err := s.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	slices.SortFunc(list.Items, func(a, b resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// edit changes a slice as a person would.
func (s *server) edit(name string, change func(*resourcev1.ResourceSlice)) {
	apitest.Edit(s.Server, "", name, func(slice *resourcev1.ResourceSlice) {
		change(slice)
		s.drop(slice)
		slicetest.AddTimes(slice, time.Now())
	})
}

// remove deletes a slice as a person would.
func (s *server) remove(name string) {
	s.Remove(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}})
}
