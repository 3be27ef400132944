package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

// ResourcePoolTemplate stamps out one DRA resource pool on every matching fake
// node, as a ResourceClaimTemplate stamps out claims.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=rpt
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Driver,type=string,JSONPath=.spec.driver
// +kubebuilder:printcolumn:name=Nodes,type=integer,JSONPath=.status.nodes
// +kubebuilder:printcolumn:name=Slices,type=integer,JSONPath=.status.slices
// +kubebuilder:printcolumn:name=Devices,type=integer,JSONPath=.status.devices
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Published")].status`
// +kubebuilder:printcolumn:name=Accepted,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name=Installation,type=string,priority=1,JSONPath=.status.installation
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type ResourcePoolTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourcePoolTemplateSpec `json:"spec"`

	// Status is written by kwok-dra if the template is an object in the cluster, and
	// ignored elsewhere.
	Status ResourcePoolTemplateStatus `json:"status,omitzero"`
}

// ResourcePoolTemplateList is a list of ResourcePoolTemplates.
//
// +kubebuilder:object:root=true
type ResourcePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourcePoolTemplate `json:"items"`
}

// ResourcePoolTemplateSpec says which driver publishes which devices on which
// nodes.
//
// String values marked "template" are Go templates with kwok's functions and
// uuid. They see .Node, the whole Node except managedFields and lastHeartbeatTime,
// and, within devices, .Index, the device's number from 0. Within partitions
// .Index is the number of the device that is divided, .Partition that of the
// partition, and .Placement its first slot. With DriverPod they see .DriverPod as
// well. There is no .Node with SharedWith, and neither it nor .DriverPod is in
// values marked "template of .Index".
type ResourcePoolTemplateSpec struct {
	// Driver is the name of the DRA driver: a DNS subdomain of at most 63
	// characters. With DriverPod it may be a template, which sees .DriverPod alone.
	// Required.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Driver string `json:"driver"`

	// DriverPod has the pool come and go with a Pod on the node: it is published
	// once the Pod is Ready, and deleted 30 s after the plugin in the Pod has gone,
	// as a kubelet does. Absent, the pool needs no Pod.
	DriverPod *DriverPod `json:"driverPod,omitempty"`

	// NodeSelector selects the nodes. Absent, every fake node is selected.
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty"`

	// SharedWith makes one pool that nodes share, in place of one on each node. It
	// is published while at least one selected fake node lets it. Absent, the pool
	// is each node's own.
	SharedWith *SharedWith `json:"sharedWith,omitempty"`

	// PoolName is the name of the pool, a template. It must differ from node to
	// node, since the scheduler identifies devices by driver/pool/device; if several
	// nodes yield the same name, only the oldest publishes the pool. With SharedWith
	// it is not a template. Default: the node's name; with SharedWith, the name of the
	// ResourcePoolTemplate.
	PoolName string `json:"poolName,omitempty"`

	// Devices are the groups of devices in the pool, in the order in which the
	// scheduler tries them. At least one.
	//
	// +kubebuilder:validation:MinItems=1
	Devices []DeviceTemplate `json:"devices"`

	// SharedCounters are counter sets as in resource.k8s.io/v1, for devices whose
	// ConsumesCounters name them. Devices with Counters or Partitions need none.
	SharedCounters []CounterSetTemplate `json:"sharedCounters,omitempty"`

	// Slices says which devices are in which ResourceSlice. Each device is in one.
	// Default: the fewest slices within the limits of the API server.
	Slices []SliceTemplate `json:"slices,omitempty"`

	// SliceLabels are labels of the ResourceSlices, for clients that select by label.
	// Values are templates without .Index. If one yields an invalid label value, such as
	// a node's name of more than 63 characters, the slices do not have the label.
	SliceLabels map[string]string `json:"sliceLabels,omitempty"`

	// PartitionTypeAttribute as in resource.k8s.io/v1 (Kubernetes 1.37, feature
	// gate DRAPartitionableDevicesType).
	PartitionTypeAttribute *resourcev1.FullyQualifiedName `json:"partitionTypeAttribute,omitempty"`

	// SkipNodeOperations as in resource.k8s.io/v1 (Kubernetes 1.37, feature gate
	// DRAOptionalNodeOperations): claims of the devices are not prepared.
	SkipNodeOperations []resourcev1.SkipNodeOperation `json:"skipNodeOperations,omitempty"`

	// Priority ranks templates: per node and driver only the templates of the
	// highest priority count. Default: 0.
	Priority int32 `json:"priority,omitempty"`

	// PublishWhen selects the state of the Node in which the pool is first
	// published; an empty selector is always true. Default: that of the
	// KwokDRAConfiguration.
	PublishWhen *kwokv1alpha1.StageSelector `json:"publishWhen,omitempty"`

	// RetireWhen selects the state of the Node in which the pool is deleted; an
	// empty selector is always true. Default: that of the KwokDRAConfiguration.
	RetireWhen *kwokv1alpha1.StageSelector `json:"retireWhen,omitempty"`

	// ClaimStatus says what a claim shows of a prepared device. Default: the mode
	// Ready and nothing else.
	ClaimStatus *ClaimStatus `json:"claimStatus,omitempty"`

	// ContainerEdits say what the driver has a container runtime inject into the
	// containers that have its devices. Default: nothing.
	ContainerEdits *ContainerEdits `json:"containerEdits,omitempty"`

	// Parameters says which opaque parameters the driver takes from DeviceClasses and
	// claims. Default: any, unchecked.
	Parameters *Parameters `json:"parameters,omitempty"`

	// Health is Unknown or Report: what Pods show of the health of their devices
	// in status.containerStatuses[].allocatedResourcesStatus (KEP-4680). Default:
	// Unknown.
	Health Health `json:"health,omitempty"`
}

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

// The types of the conditions in ResourcePoolTemplateStatus.
const (
	// ConditionAccepted is True where the newest version of the template is in
	// force, and False, with the cause, where it is refused and the last good one is
	// in force, if there was one.
	ConditionAccepted = "Accepted"
	// ConditionPublished is True where the template's pools are published wherever
	// they should be, and on one node at least.
	ConditionPublished = "Published"
)

// ResourcePoolTemplateStatus is what became of a template that is an object in
// the cluster.
type ResourcePoolTemplateStatus struct {
	// Conditions are Accepted and Published.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Nodes is the number of nodes on which the template's devices are published,
	// or, of a pool that nodes share, 1.
	Nodes int64 `json:"nodes"`
	// Slices is the number of ResourceSlices that have devices or counter sets of
	// the template.
	Slices int64 `json:"slices"`
	// Devices is the number of devices that are published from the template.
	Devices int64 `json:"devices"`
	// Installation is the installation of kwok-dra whose status this is. The numbers
	// count only its nodes.
	Installation string `json:"installation,omitempty"`
}

// KwokDRAConfiguration holds what is true for all templates. There may be
// several, each with some of the fields; a field that is set in two of them is
// an error.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp
type KwokDRAConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KwokDRAConfigurationSpec `json:"spec"`
}

// KwokDRAConfigurationList is a list of KwokDRAConfigurations.
//
// +kubebuilder:object:root=true
type KwokDRAConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []KwokDRAConfiguration `json:"items"`
}

// KwokDRAConfigurationSpec says when pools are published and retired, and when
// and how claims are prepared. Selectors are those of KWOK's Stages; an empty
// selector is always true. They see the whole Node or Pod except managedFields
// and, of a Node, lastHeartbeatTime.
type KwokDRAConfigurationSpec struct {
	// PublishWhen selects the state of the Node in which its pools are first
	// published. Once published, a pool stays when the selector stops matching.
	// Default: the condition Ready is True.
	PublishWhen *kwokv1alpha1.StageSelector `json:"publishWhen,omitempty"`

	// RetireWhen selects the state of the Node in which its pools are deleted.
	// It wins over PublishWhen. Default: none; only deletion of the Node retires.
	RetireWhen *kwokv1alpha1.StageSelector `json:"retireWhen,omitempty"`

	// PrepareWhen selects the state of the Pod in which its claims are prepared.
	// Default: always, that is as soon as the Pod is bound to its node.
	PrepareWhen *kwokv1alpha1.StageSelector `json:"prepareWhen,omitempty"`

	// FailWhen selects the state of the Pod in which preparing its claims fails. It
	// wins over PrepareWhen. Reason and message of the Pod's condition
	// dra.kwok.x-k8s.io/PrepareResources say why, if it exists. While a Pod waits to be
	// bound, FailWhen makes the binding conditions of its devices fail.
	// Default: never.
	FailWhen *kwokv1alpha1.StageSelector `json:"failWhen,omitempty"`

	// UnprepareWhen selects the state in which the claims of a Pod that has ended,
	// or is being deleted, are unprepared: PodReadyToStartContainers is set to
	// False. It matters only if podStatus is Faithful. Default: always.
	UnprepareWhen *kwokv1alpha1.StageSelector `json:"unprepareWhen,omitempty"`

	// PodStatus is Minimal or Faithful. Default: Minimal.
	PodStatus PodStatus `json:"podStatus,omitempty"`

	// RetryInterval is how long a Pod waits after its claims could not be prepared;
	// up to half of it is added at random. At least 1s. Default: 60s, as with the kubelet,
	// whose Pods are retried by their regular sync (syncFrequency).
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// BindingDelay is how long after its allocation a device with bindingConditions
	// has them set. Default: 0s.
	BindingDelay *metav1.Duration `json:"bindingDelay,omitempty"`

	// PluginsDir is a directory in the file system of kwok-dra in which each fake node
	// has a folder for the plugins of real DRA drivers: DIR/NODE/plugins_registry and
	// DIR/NODE/plugins, as below a kubelet's root directory. Its path has at most 36
	// characters, so that the paths of sockets are short enough. The option --plugins-dir
	// wins over it. Default: none; only drivers with templates exist.
	PluginsDir string `json:"pluginsDir,omitempty"`

	// ContainerView is a directory that kwok-dra and kwok have under the same path. With
	// it kubectl logs and kubectl exec show what the containers of Pods with prepared
	// claims see of their devices, by a Logs and an Exec object of kwok's for each Pod.
	// The option --container-view wins over it. Default: none.
	ContainerView string `json:"containerView,omitempty"`
}

// PodStatus says how much of a kubelet's Pod status kwok-dra writes.
type PodStatus string

// The values of KwokDRAConfigurationSpec.PodStatus.
const (
	// PodStatusMinimal takes the fewest writes: PodReadyToStartContainers=True when
	// all claims are prepared, and the status of a Pod that waits only if it has to
	// wait.
	PodStatusMinimal PodStatus = "Minimal"
	// PodStatusFaithful takes every write that a kubelet makes, in its order: first
	// the status of a Pod that waits, with PodReadyToStartContainers=False, then
	// True, and False again when the claims are unprepared.
	PodStatusFaithful PodStatus = "Faithful"
)
