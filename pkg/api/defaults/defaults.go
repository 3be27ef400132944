// Package defaults fills in what the kinds of dra.kwok.x-k8s.io leave out.
package defaults

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// PoolName is the default of ResourcePoolTemplateSpec.PoolName.
const PoolName = "{{ .Node.metadata.name }}"

// RetryInterval is the default of KwokDRAConfigurationSpec.RetryInterval.
const RetryInterval = time.Minute

// SetResourcePoolTemplate fills in what a template leaves out.
func SetResourcePoolTemplate(t *v1alpha1.ResourcePoolTemplate) {
	poolName := PoolName
	if t.Spec.SharedWith != nil {
		poolName = t.Name
	}
	t.Spec.PoolName = cmp.Or(t.Spec.PoolName, poolName)
	for i := range t.Spec.Devices {
		if slots := t.Spec.Devices[i].Slots; slots != nil {
			slots.Name = cmp.Or(slots.Name, "slot")
		}
	}
	t.Spec.ClaimStatus = cmp.Or(t.Spec.ClaimStatus, &v1alpha1.ClaimStatus{})
	t.Spec.ClaimStatus.Mode = cmp.Or(t.Spec.ClaimStatus.Mode, v1alpha1.ClaimStatusReady)
	t.Spec.Health = cmp.Or(t.Spec.Health, v1alpha1.HealthUnknown)
}

// SetKwokDRAConfiguration fills in what a configuration leaves out.
func SetKwokDRAConfiguration(c *v1alpha1.KwokDRAConfiguration) {
	// A driver is a DaemonSet, whose Pods start once the Node is Ready.
	isNodeReady := &kwokv1alpha1.StageSelector{
		MatchExpressions: []kwokv1alpha1.MatchExpression{{
			Key:      `.status.conditions.[] | select( .type == "Ready" ) | .status`,
			Operator: kwokv1alpha1.SelectorOpIn,
			Values:   []string{"True"},
		}},
	}
	c.Spec.PublishWhen = cmp.Or(c.Spec.PublishWhen, isNodeReady)
	c.Spec.PrepareWhen = cmp.Or(c.Spec.PrepareWhen, &kwokv1alpha1.StageSelector{})
	c.Spec.UnprepareWhen = cmp.Or(c.Spec.UnprepareWhen, &kwokv1alpha1.StageSelector{})
	c.Spec.PodStatus = cmp.Or(c.Spec.PodStatus, v1alpha1.PodStatusMinimal)
	c.Spec.RetryInterval = cmp.Or(c.Spec.RetryInterval, &metav1.Duration{Duration: RetryInterval})
	c.Spec.BindingDelay = cmp.Or(c.Spec.BindingDelay, &metav1.Duration{})
}
