package drajudge

import (
	"context"
	"reflect"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// allocation is a new allocation that is judged by the supply of one moment.
type allocation struct {
	*Observer
	evaluator

	claim      *resourcev1.ResourceClaim
	requests   []request
	results    []result
	violations []Violation
}

// result is a device that was allocated.
type result struct {
	*resourcev1.DeviceRequestAllocationResult

	id deviceID
	// request is nil if the claim has none of that name.
	request *request
	pool    *pool
	// offer is the device in its slice, or nil if the pool's newest generation lacks it.
	offer *poolDevice
}

// checkAllocation judges a new allocation by the supply as it is.
func (o *Observer) checkAllocation(ctx context.Context, claim *resourcev1.ResourceClaim) []Violation {
	a := o.newAllocation(ctx, claim)
	a.checkDevices()
	for i := range a.results {
		if r := &a.results[i]; r.request != nil {
			a.checkCopies(r)
		}
	}
	// What applies to a request is compared: schedulers may list that in several ways.
	for i := range a.requests {
		r := &a.requests[i]
		class := a.supply.class(r.DeviceClassName)
		if class == nil || len(a.devicesFor(r)) == 0 {
			continue
		}
		if wanted, found := configurationsFor(claim, r, class); !reflect.DeepEqual(wanted, found) {
			a.report(configCopied, "for request %s the class and the claim have %d entries, and the allocation has %d, or others", r.name, len(wanted), len(found))
		}
	}
	return a.violations
}

func (o *Observer) newAllocation(ctx context.Context, claim *resourcev1.ResourceClaim) *allocation {
	a := &allocation{Observer: o, evaluator: evaluator{ctx, o.cel}, claim: claim, requests: requestsOf(claim)}
	allocated := claim.Status.Allocation.Devices.Results
	for i := range allocated {
		id := deviceOf(&allocated[i])
		r := result{DeviceRequestAllocationResult: &allocated[i], id: id, pool: o.supply.pool(id.poolID())}
		r.offer = r.pool.byName[id.name]
		if j := slices.IndexFunc(a.requests, func(known request) bool { return known.name == r.Request }); j >= 0 {
			r.request = &a.requests[j]
		}
		a.results = append(a.results, r)
	}
	return a
}

// checkDevices checks that the claim may have the devices.
func (a *allocation) checkDevices() {
	a.checkRequests()
	a.checkPools()
	for i := range a.results {
		if r := &a.results[i]; r.request != nil && r.offer != nil {
			a.checkSelectors(r)
			a.checkTaints(r)
			a.checkCapacity(r)
		}
	}
	a.checkAllDevices()
	a.checkConstraints()
	a.checkCapacityTotals()
	a.checkCounterTotals()
	a.checkNodeSelector()
}

func (a *allocation) report(id, evidence string, args ...any) {
	a.violations = append(a.violations, a.violation(id, []Object{nameObject("ResourceClaim", a.claim)}, evidence, args...))
}

// reportOn reports a violation for a device of the claim.
func (a *allocation) reportOn(r *result, id, evidence string, args ...any) {
	objects := []Object{nameObject("ResourceClaim", a.claim)}
	if r.offer != nil {
		objects = append(objects, nameObject("ResourceSlice", r.offer.slice))
	}
	args = append([]any{r.Request, r.id}, args...)
	a.violations = append(a.violations, a.violation(id, objects, "request %s, device %s: "+evidence, args...))
}

// checkPools checks that the devices exist.
func (a *allocation) checkPools() {
	for i := range a.results {
		r := &a.results[i]
		switch {
		case r.offer == nil && r.pool.generation == 0:
			a.reportOn(r, poolNewest, "the pool has no slices")
		case r.offer == nil:
			a.reportOn(r, poolNewest, "no slice of the pool's highest generation, %d, has the device", r.pool.generation)
		case r.pool.incomplete != "":
			a.reportOn(r, poolComplete, "the pool is incomplete: %s", r.pool.incomplete)
		case r.pool.invalid != "":
			a.reportOn(r, poolComplete, "the pool is invalid: %s", r.pool.invalid)
		}
	}
}

// checkCopies checks what a result repeats of the request and the device.
func (a *allocation) checkCopies(r *result) {
	if !apiequality.Semantic.DeepEqual(r.Tolerations, r.request.Tolerations) {
		a.reportOn(r, tolerationsCopied, "the result has the tolerations %v, the request %v", r.Tolerations, r.request.Tolerations)
	}
	if wanted := isTrue(r.request.AdminAccess); wanted != isTrue(r.AdminAccess) {
		a.reportOn(r, adminRequested, "the request has adminAccess %t, the result %t", wanted, isTrue(r.AdminAccess))
	}
	if r.offer == nil {
		return
	}
	device := r.offer.device
	if !slices.Equal(r.BindingConditions, device.BindingConditions) || !slices.Equal(r.BindingFailureConditions, device.BindingFailureConditions) {
		a.reportOn(r, conditionsCopied, "the slice has %v and %v, the result %v and %v",
			device.BindingConditions, device.BindingFailureConditions, r.BindingConditions, r.BindingFailureConditions)
	}
}

// checkTaints checks that the request tolerates the taints of its device.
func (a *allocation) checkTaints(r *result) {
	for _, taint := range a.supply.taintsOf(r.id, r.offer.device) {
		prevents := taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
		if prevents && !slices.ContainsFunc(r.request.Tolerations, func(t resourcev1.DeviceToleration) bool { return toleratesTaint(&t, &taint) }) {
			a.reportOn(r, taintsTolerated, "the request does not tolerate the taint %s=%s:%s", taint.Key, taint.Value, taint.Effect)
		}
	}
}

func toleratesTaint(toleration *resourcev1.DeviceToleration, taint *resourcev1.DeviceTaint) bool {
	return (toleration.Effect == "" || toleration.Effect == taint.Effect) &&
		(toleration.Key == "" || toleration.Key == taint.Key) &&
		(toleration.Operator == resourcev1.DeviceTolerationOpExists || toleration.Value == taint.Value)
}

// checkNodeSelector checks that every node on which the allocation may be used reaches its devices.
func (a *allocation) checkNodeSelector() {
	selector := a.claim.Status.Allocation.NodeSelector
	names, isPinned := pinnedNodes(selector)
	nodes := a.supply.nodesAdmittedBy(selector)
	for i := range a.results {
		r := &a.results[i]
		if r.offer == nil {
			continue
		}
		if isNodeLocal(r.offer.slice, r.offer.device) && (!isPinned || len(names) != 1) {
			a.reportOn(r, nodeSelectorCovers, "the device is for one node, and the allocation's node selector does not name one")
			continue
		}
		for _, node := range nodes {
			if !reachesNode(r.offer.slice, r.offer.device, node) {
				a.reportOn(r, nodeSelectorCovers, "the allocation's node selector admits node %s, which does not reach the device", node.Name)
				break
			}
		}
	}
}
