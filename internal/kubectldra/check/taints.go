package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// tainted are the devices that have a taint in common.
type tainted struct {
	text, fix     string
	devices, used []string
}

// findTaints finds devices that taints keep Pods away from. That is a problem if a claim has one of them.
func findTaints(_ context.Context, w *World) []Finding {
	known := map[string]*tainted{}
	users := map[string][]string{}
	for _, claim := range w.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			id := result.Driver + "/" + result.Pool + "/" + result.Device
			users[id] = append(users[id], "claim "+keyOf(claim))
		}
	}
	for _, device := range w.listDevices() {
		for _, taint := range w.cluster.TaintsOf(device.pool.driver, device.pool.name, device.Device) {
			key := device.pool.driver + "\n" + usage.DescribeTaint(&taint)
			if known[key] == nil {
				known[key] = &tainted{text: usage.DescribeTaint(&taint), fix: fixTaint(&taint, device.slice)}
			}
			known[key].devices = append(known[key].devices, device.id())
			known[key].used = append(known[key].used, users[device.id()]...)
		}
	}
	var findings []Finding
	for key, group := range known {
		driver, _, _ := strings.Cut(key, "\n")
		finding := Finding{Level: Hint, Object: driver, Evidence: fmt.Sprintf("%s on %s", group.text, firstFew(group.devices)), Fix: group.fix}
		if len(group.used) > 0 {
			finding.Level, finding.Evidence = Problem, finding.Evidence+"; in use by "+firstFew(group.used)
		}
		findings = append(findings, finding)
	}
	return findings
}

func fixTaint(taint *inventory.Taint, slice *resourcev1.ResourceSlice) string {
	if taint.Rule != "" {
		return "kubectl delete devicetaintrule " + taint.Rule
	}
	return "kubectl get resourceslice " + slice.Name + " -o yaml # the driver has set the taint: its log says why"
}

// findIdleRules finds DeviceTaintRules that select none of the published devices.
func findIdleRules(_ context.Context, w *World) []Finding {
	var findings []Finding
	for i := range w.Rules {
		rule := &w.Rules[i]
		isSelected := func(device published) bool { return rule.Selects(device.pool.driver, device.pool.name, device.Name) }
		if !slices.ContainsFunc(w.listDevices(), isSelected) {
			findings = append(findings, Finding{Level: Hint, Object: rule.Taint.Rule, Evidence: "the taint " + usage.DescribeTaint(&rule.Taint) + " is on no device", Fix: "kubectl delete devicetaintrule " + rule.Taint.Rule})
		}
	}
	return findings
}
