package claims

import (
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
)

// server is an API server that validates the status of claims, and may drop
// fields.
type server struct {
	*apitest.Server
	// dropHealth has the server behave as one without ResourceHealthStatus.
	dropHealth bool
}

func newServer(objects ...runtime.Object) *server {
	s := &server{Server: apitest.New(objects...)}
	s.Name, s.Admit = operation, s.admit
	return s
}

// operation names all calls but those of the caches: "prepare c", "get pods p".
func operation(action clienttesting.Action) string {
	resource := action.GetResource().Resource
	switch a := action.(type) {
	case clienttesting.GetActionImpl:
		return "get " + resource + " " + a.Name
	case clienttesting.UpdateActionImpl:
		return "update " + resource + " " + a.Object.(metav1.Object).GetName()
	case clienttesting.PatchActionImpl:
		if resource == "pods" {
			return podOperation(a) + " " + a.Name
		}
		return claimOperation(a) + " " + a.Name
	case clienttesting.ListActionImpl:
		if resource == "resourceslices" && a.ListOptions.LabelSelector == "" {
			return "list resourceslices"
		}
	}
	return ""
}

// podOperation tells the writes of a Pod apart by what is in them.
func podOperation(action clienttesting.PatchActionImpl) string {
	if action.GetPatchType() == types.JSONPatchType {
		return "health"
	}
	var patch corev1.Pod
	if err := json.Unmarshal(action.Patch, &patch); err != nil {
		return err.Error()
	}
	switch ready := facts.ReadyToStart(&corev1.Pod{Status: patch.Status}); {
	case ready == corev1.ConditionTrue:
		return "ready"
	case patch.Status.Phase != "":
		return "waiting"
	}
	return "unprepared"
}

// claimOperation tells those of a claim apart by who writes, and whether there are
// entries.
func claimOperation(action clienttesting.PatchActionImpl) string {
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(action.Patch, &applied.Object); err != nil {
		return err.Error()
	}
	manager := action.PatchOptions.FieldManager
	entries, _, _ := unstructured.NestedSlice(applied.Object, "status", "devices")
	switch {
	case manager == facts.Manager && len(entries) > 0:
		return "prepare"
	case manager == facts.Manager:
		return "withdraw"
	case manager == facts.BindingManager && len(entries) > 0:
		return "bind"
	}
	return "withdraw-" + manager
}

func (s *server) admit(object runtime.Object) error {
	switch object := object.(type) {
	case *corev1.Pod:
		for i := range object.Status.ContainerStatuses {
			if s.dropHealth {
				object.Status.ContainerStatuses[i].AllocatedResourcesStatus = nil
			}
		}
	case *resourcev1.ResourceClaim:
		live := apitest.Get[resourcev1.ResourceClaim](s.Server, object.Namespace, object.Name)
		return errors.Join(validate(object), validateUpdate(object, live))
	}
	return nil
}

// validateUpdate refuses another allocation, and compares parameters byte for byte.
func validateUpdate(claim, live *resourcev1.ResourceClaim) error {
	allocation := claim.Status.Allocation
	if allocation == nil || live.Status.Allocation == nil || apiequality.Semantic.DeepEqual(allocation, live.Status.Allocation) {
		return nil
	}
	return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), claim.Name, field.ErrorList{
		field.Invalid(field.NewPath("status", "allocation"), allocation, "field is immutable"),
	})
}

// validate refuses entries of devices that are not allocated.
func validate(claim *resourcev1.ResourceClaim) error {
	for i := range claim.Status.Devices {
		id := facts.EntryID(&claim.Status.Devices[i])
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
			func(r resourcev1.DeviceRequestAllocationResult) bool { return facts.ResultID(&r) == id }) {
			return apierrors.NewInvalid(resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind(), claim.Name, nil)
		}
	}
	return nil
}
