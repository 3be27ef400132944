// Package defaults fills in what the kinds of dra.kwok.x-k8s.io leave out.
package defaults

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// PoolName is the default of ResourcePoolTemplateSpec.PoolName.
const PoolName = "{{ .Node.metadata.name }}"

// SlotName is the default of Slots.Name.
const SlotName = "slot"

// RetryInterval is the default of KwokDRAConfigurationSpec.RetryInterval.
const RetryInterval = time.Minute

// SetResourcePoolTemplate fills in what a template leaves out.
func SetResourcePoolTemplate(t *v1alpha1.ResourcePoolTemplate) {
	if t.Spec.PoolName == "" && t.Spec.SharedWith == nil {
		t.Spec.PoolName = PoolName
	}
	if t.Spec.PoolName == "" {
		t.Spec.PoolName = t.Name
	}
	for i := range t.Spec.Devices {
		if slots := t.Spec.Devices[i].Slots; slots != nil && slots.Name == "" {
			slots.Name = SlotName
		}
	}
	if t.Spec.ClaimStatus == nil {
		t.Spec.ClaimStatus = &v1alpha1.ClaimStatus{}
	}
	if t.Spec.ClaimStatus.Mode == "" {
		t.Spec.ClaimStatus.Mode = v1alpha1.ClaimStatusReady
	}
	if t.Spec.Health == "" {
		t.Spec.Health = v1alpha1.HealthUnknown
	}
}

// SetKwokDRAConfiguration fills in what a configuration leaves out.
func SetKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) {
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
		c.Spec.PodStatus = v1alpha1.PodStatusMinimal
	}
	if c.Spec.RetryInterval == nil {
		c.Spec.RetryInterval = &metav1.Duration{Duration: RetryInterval}
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
