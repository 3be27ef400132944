package drajudge

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type quantities map[resourcev1.QualifiedName]resource.Quantity

// checkCapacity checks what a result says of the capacity of its device.
func (a *allocation) checkCapacity(r *result) {
	consumption, why := consumptionOf(r.request, r.offer.device)
	if why != "" {
		a.reportOn(r, capacityOffered, "%s", why)
	}
	if isTrue(r.AdminAccess) {
		return // it consumes nothing
	}
	isShared := isTrue(r.offer.device.AllowMultipleAllocations)
	if isShared != (r.ShareID != nil) {
		a.reportOn(r, shareIDs, "the device has allowMultipleAllocations %t, and the result has a share ID: %t", isShared, r.ShareID != nil)
	}
	if !isShared || why != "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(consumption)) {
		wanted := consumption[name]
		consumed, isConsumed := r.ConsumedCapacity[name]
		switch {
		case !isConsumed:
			a.reportOn(r, capacityConsumed, "the result does not say how much of %s it consumes, which is %s", name, &wanted)
		case wanted.Cmp(consumed) != 0:
			a.reportOn(r, capacityConsumed, "the result consumes %s of %s, and the request comes to %s", &consumed, name, &wanted)
		}
	}
}

// consumptionOf returns what a request consumes of each capacity of a device, or says why the device does not do.
func consumptionOf(r *request, device *resourcev1.Device) (consumption quantities, why string) {
	asked := quantities{}
	if r.Capacity != nil {
		asked = r.Capacity.Requests
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, isOffered := device.Capacity[name]; !isOffered {
			return nil, fmt.Sprintf("the device has no capacity %s", name)
		}
	}
	consumption = quantities{}
	for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
		offered := device.Capacity[name]
		amount, isAsked := asked[name]
		if isAsked {
			amount = roundUp(amount, offered.RequestPolicy)
		} else {
			amount = offered.Value
			if policy := offered.RequestPolicy; policy != nil && policy.Default != nil {
				amount = *policy.Default
			}
		}
		if most := mostOf(&offered); amount.Cmp(most) > 0 {
			return nil, fmt.Sprintf("%s of capacity %s are needed, and at most %s can be had", &amount, name, &most)
		}
		consumption[name] = amount
	}
	return consumption, ""
}

// roundUp returns the least amount that a policy permits and that is enough.
func roundUp(asked resource.Quantity, policy *resourcev1.CapacityRequestPolicy) resource.Quantity {
	if policy == nil {
		return asked
	}
	for _, valid := range policy.ValidValues {
		if asked.Cmp(valid) <= 0 {
			return valid
		}
	}
	valid := policy.ValidRange
	if valid == nil || valid.Min == nil {
		return asked
	}
	if asked.Cmp(*valid.Min) <= 0 {
		return *valid.Min
	}
	if valid.Step == nil || valid.Step.Sign() <= 0 {
		return asked
	}
	return roundUpToStep(asked, *valid.Min, *valid.Step)
}

// mostMilli is the largest whole number of which the thousandfold fits into an int64.
const mostMilli = 1 << 53

// roundUpToStep counts in thousandths, or in whole numbers if the amount is too large for that.
func roundUpToStep(asked, least, step resource.Quantity) resource.Quantity {
	count := func(asked, least, step int64) int64 { return least + (asked-least+step-1)/step*step }
	if asked.Value() > mostMilli {
		return *resource.NewQuantity(count(asked.Value(), least.Value(), step.Value()), asked.Format)
	}
	return *resource.NewMilliQuantity(count(asked.MilliValue(), least.MilliValue(), step.MilliValue()), asked.Format)
}

// mostOf returns the most that one share can have of a capacity.
func mostOf(offered *resourcev1.DeviceCapacity) resource.Quantity {
	most := offered.Value
	if policy := offered.RequestPolicy; policy != nil {
		if policy.ValidRange != nil && policy.ValidRange.Max != nil && policy.ValidRange.Max.Cmp(most) < 0 {
			most = *policy.ValidRange.Max
		}
		if count := len(policy.ValidValues); count > 0 && policy.ValidValues[count-1].Cmp(most) < 0 {
			most = policy.ValidValues[count-1]
		}
	}
	return most
}

// checkCapacityTotals checks that shares fit together on the devices of the claim.
func (a *allocation) checkCapacityTotals() {
	checked := map[deviceID]bool{}
	for i := range a.results {
		r := &a.results[i]
		if checked[r.id] || r.offer == nil || isTrue(r.AdminAccess) || len(r.ConsumedCapacity) == 0 {
			continue
		}
		checked[r.id] = true
		totals := quantities{}
		for _, h := range a.holders[r.id] {
			if !isTrue(h.result.AdminAccess) {
				totals.addAmounts(h.result.ConsumedCapacity)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			total, offered := totals[name], r.offer.device.Capacity[name]
			if total.Cmp(offered.Value) > 0 {
				a.reportOn(r, capacityTotal, "%d shares consume %s of %s, and the device has %s", len(a.holders[r.id]), &total, name, &offered.Value)
			}
		}
	}
}

func (q quantities) addAmounts(amounts map[resourcev1.QualifiedName]resource.Quantity) {
	for name, amount := range amounts {
		total := q[name].DeepCopy()
		total.Add(amount)
		q[name] = total
	}
}

// counter identifies a counter of a pool.
type counter struct{ set, name string }

// checkCounterTotals checks that pools have the counters that their allocated devices consume.
func (a *allocation) checkCounterTotals() {
	pools := map[poolID]map[counter]*result{}
	for i := range a.results {
		r := &a.results[i]
		isHeldByOthers := slices.ContainsFunc(a.holders[r.id], func(h holder) bool { return h.claim != a.claim && !isTrue(h.result.AdminAccess) })
		if r.offer == nil || isTrue(r.AdminAccess) || isHeldByOthers { // a further share consumes no more counters
			continue
		}
		id := r.id.poolID()
		if pools[id] == nil {
			pools[id] = map[counter]*result{}
		}
		for _, consumption := range r.offer.device.ConsumesCounters {
			for name := range consumption.Counters {
				pools[id][counter{consumption.CounterSet, name}] = r
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(pools), poolID.compare) {
		if len(pools[id]) > 0 {
			a.checkCountersOf(a.supply.pool(id), pools[id])
		}
	}
}

func (a *allocation) checkCountersOf(p *pool, drawn map[counter]*result) {
	totals := map[counter]resource.Quantity{}
	for i := range p.devices {
		offer := &p.devices[i]
		if !slices.ContainsFunc(a.holders[offer.id], func(h holder) bool { return !isTrue(h.result.AdminAccess) }) {
			continue
		}
		for _, consumption := range offer.device.ConsumesCounters {
			for name, amount := range consumption.Counters {
				id := counter{consumption.CounterSet, name}
				total := totals[id].DeepCopy()
				total.Add(amount.Value)
				totals[id] = total
			}
		}
	}
	for id, r := range drawn {
		total, offered := totals[id], p.counters[id.set][id.name]
		if total.Cmp(offered.Value) > 0 {
			a.reportOn(r, countersTotal, "the allocated devices of the pool consume %s of counter %s in set %s, which has %s", &total, id.name, id.set, &offered.Value)
		}
	}
}
