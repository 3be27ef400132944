package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

// DefaultPoolName is the default of ResourcePoolTemplateSpec.PoolName.
const DefaultPoolName = "{{ .Node.metadata.name }}"

// DefaultSlotName is the default of Slots.Name.
const DefaultSlotName = "slot"

// DefaultRetryInterval is the default of KwokDRAConfigurationSpec.RetryInterval.
const DefaultRetryInterval = time.Minute

// SetDefaults fills in what the template leaves out.
func (t *ResourcePoolTemplate) SetDefaults() {
	if t.Spec.PoolName == "" && t.Spec.SharedWith == nil {
		t.Spec.PoolName = DefaultPoolName
	}
	if t.Spec.PoolName == "" {
		t.Spec.PoolName = t.Name
	}
	for i := range t.Spec.Devices {
		if slots := t.Spec.Devices[i].Slots; slots != nil && slots.Name == "" {
			slots.Name = DefaultSlotName
		}
	}
	if t.Spec.ClaimStatus == nil {
		t.Spec.ClaimStatus = &ClaimStatus{}
	}
	if t.Spec.ClaimStatus.Mode == "" {
		t.Spec.ClaimStatus.Mode = ClaimStatusReady
	}
	if t.Spec.Health == "" {
		t.Spec.Health = HealthUnknown
	}
}

// SetDefaults fills in what the configuration leaves out.
func (c *KwokDRAConfiguration) SetDefaults() {
	if c.Spec.PublishWhen == nil {
		c.Spec.PublishWhen = whenReady()
	}
	if c.Spec.PrepareWhen == nil {
		c.Spec.PrepareWhen = &kwokv1alpha1.StageSelector{}
	}
	if c.Spec.UnprepareWhen == nil {
		c.Spec.UnprepareWhen = &kwokv1alpha1.StageSelector{}
	}
	if c.Spec.PodStatus == "" {
		c.Spec.PodStatus = PodStatusMinimal
	}
	if c.Spec.RetryInterval == nil {
		c.Spec.RetryInterval = &metav1.Duration{Duration: DefaultRetryInterval}
	}
	if c.Spec.BindingDelay == nil {
		c.Spec.BindingDelay = &metav1.Duration{}
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
