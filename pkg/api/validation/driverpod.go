package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// validateDriver checks the name of the driver. A template is checked when it is rendered.
func validateDriver(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	switch templated := v1alpha1.IsTemplate(spec.Driver); {
	case templated && spec.DriverPod == nil:
		at.addInvalid(spec.Driver, "must be a DNS subdomain; it may be a template only with driverPod, whose Pod it reads")
	case !templated:
		driverForm.checkRequiredName(spec.Driver, "the name of the DRA driver, for example gpu.example.com", at)
	}
}

// validateDriverPod checks the selection of the Pods that run the plugin of the driver.
func validateDriverPod(spec *v1alpha1.ResourcePoolTemplateSpec, at checker) {
	given := spec.DriverPod
	if given == nil {
		return
	}
	if spec.SharedWith != nil {
		at.addForbidden("not with sharedWith: the Pod on a node is for the node's own pool; remove one of the two")
	}
	if given.Namespace != "" {
		labelForm.checkName(given.Namespace, at.atField("namespace"))
	}
	if given.Container != "" {
		labelForm.checkName(given.Container, at.atField("container"))
	}
	selector := at.atField("selector")
	if selector.requirePresence(len(given.Selector.MatchLabels)+len(given.Selector.MatchExpressions) > 0,
		"matchLabels, matchExpressions or both, as in spec.selector of the driver's DaemonSet; an empty one would select every Pod") {
		selector.addErrors(metav1validation.ValidateLabelSelector(&given.Selector, metav1validation.LabelSelectorValidationOptions{}, selector.path)...)
	}
}

// ValidateDriver applies the API server's rule for names of drivers: DNS subdomains of at most 63
// characters.
func ValidateDriver(name string, path *field.Path) field.ErrorList {
	return driverForm.checkAtPath(name, path)
}
