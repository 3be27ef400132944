package story

import (
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

// probeName is the name of what DetectFeatures asks for.
const probeName = "dra-story-probe"

// DetectFeatures asks the API server by dry runs which fields it keeps, and which versions it serves. What the
// scheduler and the controllers have on cannot be asked: Quotas is for the caller to set.
func DetectFeatures(ctx context.Context, client kubernetes.Interface) (Features, error) {
	var f Features
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	probe := newProbeSlice()
	probe.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: probe.Spec.Devices[0].ConsumesCounters[0].Counters}}
	slice, err := client.ResourceV1().ResourceSlices().Create(ctx, probe, dryRun)
	f.CountersWithDevices = err == nil && len(slice.Spec.SharedCounters) > 0
	if apierrors.IsInvalid(err) {
		slice, err = client.ResourceV1().ResourceSlices().Create(ctx, newProbeSlice(), dryRun)
	}
	if err != nil {
		return f, fmt.Errorf("detect features by a ResourceSlice: %w", err)
	}
	device := &slice.Spec.Devices[0]
	f.DeviceTaints = len(device.Taints) > 0
	f.PartitionableDevices = len(device.ConsumesCounters) > 0
	f.ConsumableCapacity = device.AllowMultipleAllocations != nil
	f.BindingConditions = len(device.BindingConditions) > 0
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	class.Spec.ExtendedResourceName = new(domain + "/" + probeName)
	if class, err = client.ResourceV1().DeviceClasses().Create(ctx, class, dryRun); err != nil {
		return f, fmt.Errorf("detect features by a DeviceClass: %w", err)
	}
	f.ExtendedResources = class.Spec.ExtendedResourceName != nil
	if err := f.detectByClaims(ctx, client, dryRun); err != nil {
		return f, err
	}
	if f.PodGroups, err = servesPodGroups(ctx, client, dryRun); err != nil {
		return f, fmt.Errorf("detect features by a PodGroup: %w", err)
	}
	if f.TaintRuleVersion, err = findTaintRules(client.Discovery()); err != nil {
		return f, fmt.Errorf("find DeviceTaintRules: %w", err)
	}
	return f, nil
}

// newProbeSlice makes a slice with all fields that may be dropped.
func newProbeSlice() *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: probeName + "." + domain, AllNodes: new(true), Pool: resourcev1.ResourcePool{Name: probeName, Generation: 1, ResourceSliceCount: 1}}
	slice.Spec.Devices = []resourcev1.Device{{
		Name: "probe", AllowMultipleAllocations: new(true),
		Taints:            []resourcev1.DeviceTaint{{Key: domain + "/probe", Effect: resourcev1.DeviceTaintEffectNoSchedule}},
		BindingConditions: []string{"probe"}, BindingFailureConditions: []string{"broken"},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourcev1.Counter{"probe": {Value: *resource.NewQuantity(1, resource.DecimalSI)}}}},
	}}
	return slice
}

// detectByClaims asks for a claim with admin access, which the API server refuses where the namespace has no label for
// that, and for one with firstAvailable, which it refuses where it drops that.
func (f *Features) detectByClaims(ctx context.Context, client kubernetes.Interface, dryRun metav1.CreateOptions) error {
	claims := client.ResourceV1().ResourceClaims(metav1.NamespaceDefault)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "probe", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: probeName, AdminAccess: new(true)}}}
	created, err := claims.Create(ctx, claim, dryRun)
	switch {
	case err == nil:
		f.AdminAccess = created.Spec.Devices.Requests[0].Exactly.AdminAccess != nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		f.AdminAccess = true
	default:
		return fmt.Errorf("detect features by a ResourceClaim: %w", err)
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "probe", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "way", DeviceClassName: probeName}}}}
	switch _, err := claims.Create(ctx, claim, dryRun); {
	case err == nil:
		f.PrioritizedList = true
	case !apierrors.IsInvalid(err):
		return fmt.Errorf("detect features by a ResourceClaim with firstAvailable: %w", err)
	}
	return nil
}

// servesPodGroups reports whether there are PodGroups, and they keep their claims.
func servesPodGroups(ctx context.Context, client kubernetes.Interface, dryRun metav1.CreateOptions) (bool, error) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: probeName}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "probe", ResourceClaimName: new(probeName)}}
	group, err := client.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Create(ctx, group, dryRun)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && len(group.Spec.ResourceClaims) > 0, err
}

// findTaintRules returns the best version of resource.k8s.io that has DeviceTaintRules, or "".
func findTaintRules(client discovery.DiscoveryInterface) (string, error) {
	for _, version := range []string{"v1", "v1beta2", "v1alpha3"} {
		list, err := client.ServerResourcesForGroupVersion(resourcev1.GroupName + "/" + version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == "DeviceTaintRule" }) {
			return version, nil
		}
	}
	return "", nil
}
