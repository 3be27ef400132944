package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// device names a device of the driver.
type device struct{ pool, name string }

func (d device) String() string { return d.pool + "/" + d.name }

// request is the name of the request of every claim.
const request = "device"

// allocator stands in for the scheduler: it has devices of the pools allocated for claims.
type allocator struct {
	pools

	class  *resourcev1.DeviceClass
	claims []*resourcev1.ResourceClaim
}

// createClaims creates claims, each with a device of its own allocated.
func (a *allocator) createClaims(ctx context.Context, count int) ([]*resourcev1.ResourceClaim, error) {
	free, err := a.awaitDevices(ctx)
	if err != nil {
		return nil, err
	}
	if len(free) < count {
		return nil, skipped(fmt.Sprintf("needs %d devices that a claim can have for itself: the driver publishes %d", count, len(free)))
	}
	return a.createClaimsFor(ctx, free[:count]...)
}

// createClaimsFor creates claims, each with one of the devices allocated.
func (a *allocator) createClaimsFor(ctx context.Context, devices ...device) (claims []*resourcev1.ResourceClaim, err error) {
	claims = make([]*resourcev1.ResourceClaim, len(devices))
	for i := range claims {
		if claims[i], err = a.createClaim(ctx, fmt.Sprintf("%s-%d", a.name, i), devices[i]); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// createClaim creates a claim with a device, as it is when the scheduler has bound its Pod.
func (a *allocator) createClaim(ctx context.Context, name string, d device) (*resourcev1.ResourceClaim, error) {
	create, cancel := withCreateTimeout(ctx)
	defer cancel()
	if a.class == nil { // one for all claims
		class, err := a.client.ResourceV1().DeviceClasses().Create(create, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", a.driver)},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create device class %s: %w", a.name, err)
		}
		a.class = class
	}
	client := a.client.ResourceV1().ResourceClaims(a.namespace)
	claim, err := client.Create(create, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.namespace},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name:    request,
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: a.class.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create claim %s: %w", name, err)
	}
	a.claims = append(a.claims, claim)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		latest, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		latest.Status.Allocation = a.newAllocation(d)
		latest.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: a.pod.Name, UID: a.pod.UID}}
		claim, err = client.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("allocate device %s for claim %s: %w", d, name, err)
	}
	return claim, nil
}

func (a *allocator) newAllocation(d device) *resourcev1.AllocationResult {
	result := resourcev1.DeviceRequestAllocationResult{Request: request, Driver: a.driver, Pool: d.pool, Device: d.name}
	if capacity, shared := a.shared[d]; shared {
		result.ShareID, result.ConsumedCapacity = new(types.UID(uuid.NewString())), capacity
	}
	return &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{a.name},
		}}}}},
	}
}

// deleteClaim deletes a claim at once.
func (a *allocator) deleteClaim(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	a.claims = slices.DeleteFunc(a.claims, func(known *resourcev1.ResourceClaim) bool { return known.UID == claim.UID })
	return ignoreGone(a.client.ResourceV1().ResourceClaims(a.namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(claim.UID)),
	}))
}

// deleteClaims deletes all claims that are left.
func (a *allocator) deleteClaims(ctx context.Context) error {
	var errs []error
	for _, claim := range slices.Clone(a.claims) {
		errs = append(errs, a.deleteClaim(ctx, claim))
	}
	return errors.Join(errs...)
}

// exclusiveDevices returns devices that claims can have for themselves at the same time, without tolerations
// or binding conditions.
func exclusiveDevices(published []resourcev1.ResourceSlice) []device {
	var free []device
	counters := map[string]bool{}
	for i := range published {
		spec := &published[i].Spec
		for j := range spec.Devices {
			candidate := &spec.Devices[j]
			isTaken := slices.ContainsFunc(candidate.ConsumesCounters, func(consumed resourcev1.DeviceCounterConsumption) bool {
				return counters[spec.Pool.Name+"/"+consumed.CounterSet]
			})
			if isTaken || len(candidate.Taints) > 0 || len(candidate.BindingConditions) > 0 {
				continue
			}
			for _, consumed := range candidate.ConsumesCounters {
				counters[spec.Pool.Name+"/"+consumed.CounterSet] = true
			}
			free = append(free, device{spec.Pool.Name, candidate.Name})
		}
	}
	slices.SortFunc(free, func(a, b device) int { return strings.Compare(a.String(), b.String()) })
	return free
}

// sharedDevices are the devices that claims can share, and what a claim consumes of one that does not
// say how much: the default, or all.
func sharedDevices(published []resourcev1.ResourceSlice) map[device]map[resourcev1.QualifiedName]resource.Quantity {
	all := map[device]map[resourcev1.QualifiedName]resource.Quantity{}
	for i := range published {
		spec := &published[i].Spec
		for j := range spec.Devices {
			d := &spec.Devices[j]
			if d.AllowMultipleAllocations == nil || !*d.AllowMultipleAllocations {
				continue
			}
			consumed := map[resourcev1.QualifiedName]resource.Quantity{}
			for name, capacity := range d.Capacity {
				consumed[name] = capacity.Value
				if policy := capacity.RequestPolicy; policy != nil && policy.Default != nil {
					consumed[name] = *policy.Default
				}
			}
			all[device{spec.Pool.Name, d.Name}] = consumed
		}
	}
	return all
}
