package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateDriver checks the name of the driver. What a template yields is checked when
// it is rendered.
func validateDriver(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	switch templated := v1alpha1.IsTemplate(spec.Driver); {
	case templated && spec.DriverPod == nil:
		at.invalid(spec.Driver, "must be a DNS subdomain; it may be a template only with driverPod, whose Pod it reads")
	case !templated:
		driverForm.require(spec.Driver, "the name of the DRA driver, for example gpu.example.com", at)
	}
}

// validateDriverPod checks which Pods run the plugin of the driver.
func validateDriverPod(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	given := spec.DriverPod
	if given == nil {
		return
	}
	if spec.SharedWith != nil {
		at.forbidden("not with sharedWith: the Pod on a node is for the node's own pool; remove one of the two")
	}
	if given.Namespace != "" {
		labelForm.check(given.Namespace, at.child("namespace"))
	}
	if given.Container != "" {
		labelForm.check(given.Container, at.child("container"))
	}
	selector := at.child("selector")
	if selector.needs(len(given.Selector.MatchLabels)+len(given.Selector.MatchExpressions) > 0,
		"matchLabels, matchExpressions or both, as in spec.selector of the driver's DaemonSet; an empty one would select every Pod") {
		selector.add(metav1validation.ValidateLabelSelector(&given.Selector, metav1validation.LabelSelectorValidationOptions{}, selector.path)...)
	}
}

// ValidateDriver applies the API server's rule for the names of drivers: DNS
// subdomains of at most 63 characters.
func ValidateDriver(name string, path *field.Path) field.ErrorList {
	return driverForm.validate(name, path)
}
