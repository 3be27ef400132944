package inventory

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// TaintRule is what an inventory needs of a DeviceTaintRule.
type TaintRule struct {
	Name string
	// Selector selects no device where it is nil, and all where it is empty.
	Selector *resourcev1.DeviceTaintSelector
	Taint    Taint
}

// TaintRuleOf returns what an inventory needs of a rule. Its taint names the rule.
func TaintRuleOf(rule *resourcev1.DeviceTaintRule) TaintRule {
	kept := TaintRule{Name: rule.Name, Selector: rule.Spec.DeviceSelector, Taint: TaintOf(&rule.Spec.Taint)}
	kept.Taint.Rule = rule.Name
	return kept
}

// TaintOf converts the taint of a device.
func TaintOf(taint *resourcev1.DeviceTaint) Taint {
	shown := Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
	if taint.TimeAdded != nil {
		shown.TimeAdded = taint.TimeAdded.Time
	}
	return shown
}

// TaintsOf converts the taints that a driver has published.
func TaintsOf(published []resourcev1.DeviceTaint) []Taint {
	var taints []Taint
	for i := range published {
		taints = append(taints, TaintOf(&published[i]))
	}
	return taints
}

// Selects reports whether the rule taints a device.
func (r *TaintRule) Selects(driver, pool, device string) bool {
	return r.selectsPool(driver, pool) && isOrAny(r.Selector.Device, device)
}

// selectsPool reports whether the rule may taint devices of a pool.
func (r *TaintRule) selectsPool(driver, pool string) bool {
	return r.Selector != nil && isOrAny(r.Selector.Driver, driver) && isOrAny(r.Selector.Pool, pool)
}

// isOrAny reports whether a name is the wanted one, or any name is wanted.
func isOrAny(wanted *string, name string) bool {
	return wanted == nil || *wanted == name
}

// TaintsBy returns the taints that rules give to a device, in the order of the rules.
func TaintsBy(rules []TaintRule, driver, pool, device string) []Taint {
	var taints []Taint
	for i := range rules {
		if rules[i].Selects(driver, pool, device) {
			taints = append(taints, rules[i].Taint)
		}
	}
	return taints
}
