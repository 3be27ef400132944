package v1alpha1

import (
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

// DefaultPoolName is the default of ResourcePoolTemplateSpec.PoolName.
const DefaultPoolName = "{{ .Node.metadata.name }}"

// SetDefaults fills in what the template leaves out.
func (t *ResourcePoolTemplate) SetDefaults() {
	if t.Spec.PoolName == "" {
		t.Spec.PoolName = DefaultPoolName
	}
}

// SetDefaults fills in what the configuration leaves out.
func (c *KwokDRAConfiguration) SetDefaults() {
	if c.Spec.PublishWhen == nil {
		c.Spec.PublishWhen = whenReady()
	}
}

// whenReady selects Nodes whose condition Ready is True: a driver is a
// DaemonSet, and its Pods start when the node is ready for them.
func whenReady() *kwokv1alpha1.StageSelector {
	return &kwokv1alpha1.StageSelector{
		MatchExpressions: []kwokv1alpha1.MatchExpression{{
			Key:      `.status.conditions.[] | select( .type == "Ready" ) | .status`,
			Operator: kwokv1alpha1.SelectorOpIn,
			Values:   []string{"True"},
		}},
	}
}
