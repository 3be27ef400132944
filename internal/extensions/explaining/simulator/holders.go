package simulator

import (
	"cmp"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
)

// countHolders counts devices by the Pods that have them, or by the claims if no Pod uses these.
func (c *catalog) countHolders(devices []device) []Share {
	if len(devices) == 0 {
		return nil
	}
	held := map[[3]string]bool{}
	for _, d := range devices {
		held[[3]string{d.driver, d.pool, d.Name}] = true
	}
	counts := map[string]int{}
	for _, claim := range c.claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if held[[3]string{result.Driver, result.Pool, result.Device}] && !isTrue(result.AdminAccess) {
				counts[holderOf(claim)]++
			}
		}
	}
	return sortShares(counts)
}

// holderOf names the Pods for which a claim is reserved.
func holderOf(claim *resourcev1.ResourceClaim) string {
	consumers := claim.Status.ReservedFor
	switch {
	case len(consumers) == 0:
		return "claim " + objectKey(claim.Namespace, claim.Name) + " without a Pod"
	case consumers[0].Resource != "pods":
		return consumers[0].Resource + " " + objectKey(claim.Namespace, consumers[0].Name)
	case len(consumers) > 1:
		return fmt.Sprintf("%s and %d more", objectKey(claim.Namespace, consumers[0].Name), len(consumers)-1)
	}
	return objectKey(claim.Namespace, consumers[0].Name)
}

// sortShares returns shares, the largest first.
func sortShares(counts map[string]int) []Share {
	var all []Share
	for name, count := range counts {
		all = append(all, Share{name, count})
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Name, b.Name)) })
	return all
}
