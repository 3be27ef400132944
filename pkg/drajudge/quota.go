package drajudge

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkQuota checks that a new claim keeps its namespace within its quota of devices. What the API server enforces is in the
// status of a ResourceQuota.
func (o *Observer) checkQuota(claim *resourcev1.ResourceClaim) []Violation {
	var violations []Violation
	for _, id := range sortedKeys(o.supply.quotas) {
		quota := o.supply.quotas[id]
		if quota.Namespace != claim.Namespace {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			asked := o.supply.quotaUse(claim, name)
			if asked == 0 {
				continue
			}
			hard := quota.Status.Hard[name]
			used := o.usedOf(claim.Namespace, name)
			if total := resource.NewQuantity(used, resource.DecimalSI); total.Cmp(hard) > 0 {
				violations = append(violations, o.violation(deviceQuota, []Object{nameObject("ResourceClaim", claim), nameObject("ResourceQuota", quota)},
					"with it, namespace %s uses %s of %s, and the quota is %s", claim.Namespace, total, name, &hard))
			}
		}
	}
	return violations
}

// hasQuotaFor reports whether another claim would keep its namespace within its quotas of classes.
func (s *placeSearch) hasQuotaFor(claim *resourcev1.ResourceClaim) bool {
	for _, quota := range s.supply.quotas {
		if quota.Namespace != claim.Namespace {
			continue
		}
		for name, hard := range quota.Status.Hard {
			class, isClass := strings.CutSuffix(string(name), corev1.ResourceClaimsPerClass)
			if !isClass {
				continue
			}
			asked := countDevices(claim, class)
			if total := resource.NewQuantity(asked+s.usedOf(claim.Namespace, name), resource.DecimalSI); asked > 0 && total.Cmp(hard) > 0 {
				return false
			}
		}
	}
	return true
}

// usedOf adds up what the claims and Pods of a namespace use of a quota.
func (o *Observer) usedOf(namespace string, name corev1.ResourceName) int64 {
	used := int64(0)
	for _, claim := range o.claims {
		if claim.Namespace == namespace {
			used += o.supply.quotaUse(claim, name)
		}
	}
	extended, isExtended := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	if !isExtended {
		return used
	}
	for _, pod := range o.pods {
		if pod.Namespace != namespace || hasEnded(pod) {
			continue
		}
		for i := range pod.Spec.Containers { // init containers reuse what these have, or the count is too low, which is no violation
			quantity := pod.Spec.Containers[i].Resources.Requests[corev1.ResourceName(extended)]
			used += quantity.Value()
		}
	}
	return used
}

// quotaUse returns how many devices a claim uses of a quota: of that of a class, and of that of the class's extended resource.
// For an extended resource, the claim that the scheduler makes for a Pod counts with the Pod.
func (s *supply) quotaUse(claim *resourcev1.ResourceClaim, name corev1.ResourceName) int64 {
	if class, isClass := strings.CutSuffix(string(name), corev1.ResourceClaimsPerClass); isClass {
		return countDevices(claim, class)
	}
	extended, isExtended := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	if !isExtended || claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
		return 0
	}
	if class := s.classFor(corev1.ResourceName(extended)); class != nil && class.Spec.ExtendedResourceName != nil {
		return countDevices(claim, class.Name)
	}
	return 0
}

// countDevices returns how many devices of a class a claim gets at most. A request for all counts as many as a claim can have,
// and of the alternatives of a request the largest counts.
func countDevices(claim *resourcev1.ResourceClaim, class string) int64 {
	most := map[string]int64{}
	for _, r := range requestsOf(claim) {
		if r.DeviceClassName != class {
			continue
		}
		count := r.Count
		if r.AllocationMode == resourcev1.DeviceAllocationModeAll {
			count = resultLimit
		}
		most[r.base] = max(most[r.base], count)
	}
	total := int64(0)
	for _, count := range most {
		total += count
	}
	return total
}
