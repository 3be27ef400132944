package harness

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claims are the ResourceClaims of the cluster, and what they are made from.
type Claims struct{ API }

// Namespace creates a namespace with a DeviceClass and a claim template for one
// device of the driver, all of that name.
func (c Claims) Namespace(name, driver string) {
	c.Helper()
	_, err := c.Client.CoreV1().Namespaces().Create(c.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(c, err)
	_, err = c.Client.CoreV1().ServiceAccounts(name).Create(c.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(c, err)
	}
	c.DeviceClass(name, driver)
	_, err = c.Client.ResourceV1().ResourceClaimTemplates(name).Create(c.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: ClaimSpec(name)},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
}

// DeviceClass creates a class of all devices of a driver.
func (c Claims) DeviceClass(name, driver string) {
	c.Helper()
	_, err := c.Client.ResourceV1().DeviceClasses().Create(c.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
}

// ClaimSpec claims one device of each class.
func ClaimSpec(classes ...string) resourcev1.ResourceClaimSpec {
	spec := resourcev1.ResourceClaimSpec{}
	for _, class := range classes {
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: class, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class},
		})
	}
	return spec
}

// CreateClaim creates a claim.
func (c Claims) CreateClaim(namespace, name string, spec resourcev1.ResourceClaimSpec) *resourcev1.ResourceClaim {
	c.Helper()
	claim, err := c.Client.ResourceV1().ResourceClaims(namespace).Create(c.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(c, err)
	return claim
}

// Claim reads a claim.
func (c Claims) Claim(namespace, name string) *resourcev1.ResourceClaim {
	c.Helper()
	claim, err := c.Client.ResourceV1().ResourceClaims(namespace).Get(c.Context(), name, metav1.GetOptions{})
	require.NoError(c, err)
	return claim
}

// ClaimOf is the claim that was made for a Pod from its template.
func (h *H) ClaimOf(namespace, pod string) *resourcev1.ResourceClaim {
	h.Helper()
	return h.Claim(namespace, *h.Pod(namespace, pod).Status.ResourceClaimStatuses[0].ResourceClaimName)
}

// Entries waits until a claim has that many entries in status.devices.
func (c Claims) Entries(namespace, name string, count int) *resourcev1.ResourceClaim {
	c.Helper()
	var claim *resourcev1.ResourceClaim
	c.Eventually(Patience, func() string {
		if claim = c.Claim(namespace, name); len(claim.Status.Devices) == count {
			return ""
		}
		return fmt.Sprintf("claim %s has %d entries, want %d: %+v", name, len(claim.Status.Devices), count, claim.Status)
	})
	return claim
}

// ForeignSlice publishes eight devices, standing in for another driver.
func (s Slices) ForeignSlice(node, driver string) {
	s.Helper()
	var devices []resourcev1.Device
	for i := range 8 {
		devices = append(devices, resourcev1.Device{Name: fmt.Sprint("foreign-", i)})
	}
	_, err := s.Client.ResourceV1().ResourceSlices().Create(s.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "foreign-"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node,
			Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: devices,
		},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
}

// ReportForeign writes a claim's entry, standing in for another driver.
func (c Claims) ReportForeign(namespace, name, driver string) {
	c.Helper()
	claim := c.Claim(namespace, name)
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == driver {
			claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{
				Driver: driver, Pool: result.Pool, Device: result.Device,
				Conditions: []metav1.Condition{{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Foreign", LastTransitionTime: metav1.Now()}},
			})
		}
	}
	_, err := c.Client.ResourceV1().ResourceClaims(namespace).UpdateStatus(c.Context(), claim, metav1.UpdateOptions{})
	require.NoError(c, err)
}

// ForeignEntry returns what another driver reports of its device of a claim.
func ForeignEntry(claim *resourcev1.ResourceClaim, driver string) resourcev1.AllocatedDeviceStatus {
	for _, entry := range claim.Status.Devices {
		if entry.Driver == driver {
			return entry
		}
	}
	return resourcev1.AllocatedDeviceStatus{}
}
