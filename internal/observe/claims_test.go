package observe

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

// TestSlimClaim keeps the field managers of kwok-dra that have entries.
func TestSlimClaim(t *testing.T) {
	t.Parallel()
	fields := metav1.NewFieldsV1
	claim := claimstest.Allocated("c", claimstest.NewPod("p"))
	claim.ResourceVersion, claim.Annotations = "5", map[string]string{"a": "b"}
	claim.OwnerReferences = []metav1.OwnerReference{{UID: "u"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu"}}
	claim.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-scheduler", Subresource: "status", FieldsV1: fields(`{"f:status":{"f:devices":{}}}`)},
		{Manager: facts.Manager, FieldsV1: fields(`{"f:metadata":{"f:devices":{}}}`)},
		{Manager: facts.Manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: fields(`{"f:status":{"f:devices":{}}}`)},
		{Manager: facts.BindingManager, Subresource: "status", FieldsV1: fields(`{}`)},
	}
	slim := SlimClaim(claim)
	require.Equal(t, []metav1.ManagedFieldsEntry{{Manager: facts.Manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status"}}, slim.ManagedFields)
	require.Equal(t, claim.Status, slim.Status)
	require.Equal(t, claim.OwnerReferences, slim.OwnerReferences)
	require.Equal(t, "5", slim.ResourceVersion)
	require.Empty(t, slim.Spec)

	observed := observeClaim(claim)
	require.Equal(t, slim, observed.Decode())
	require.Equal(t, "5", observed.GetObjectMeta().GetResourceVersion())
	require.True(t, observed.Ours)
	require.True(t, observed.Allocated)
	require.Equal(t, "n", observed.Node)
	claim.ManagedFields = nil
	require.False(t, observeClaim(claim).Ours, "nothing of it is kwok-dra's")
}
