package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DriverPod selects the Pods in which the plugin of a driver runs, as the DaemonSet
// of the driver makes them.
type DriverPod struct {
	// Namespace is that of the Pods. Default: all namespaces.
	Namespace string `json:"namespace,omitempty"`

	// Selector selects the Pods by their labels. It must not be empty. Required.
	Selector metav1.LabelSelector `json:"selector"`

	// Container is the container that the plugin runs in. Templates see its env,
	// args and image, and the plugin is up as long as it runs. Default: the first
	// container of the Pod.
	Container string `json:"container,omitempty"`

	// Env are variables of the container with the values that they must have. A chart
	// that tells its driver by its environment what devices there are has a template for
	// each case. Absent, the environment does not matter.
	Env map[string]string `json:"env,omitempty"`
}
