package story

// Features says what an API server serves and keeps. A story has nothing of what is missing.
type Features struct {
	// AdminAccess permits claims for devices that are in use.
	AdminAccess bool
	// PrioritizedList permits requests with firstAvailable.
	PrioritizedList bool
	// PartitionableDevices permits counters, and devices with nodes of their own.
	PartitionableDevices bool
	// CountersWithDevices says that counters and devices share a slice, as before Kubernetes 1.35; later they may not.
	CountersWithDevices bool
	// ConsumableCapacity permits shared devices and constraints with distinctAttribute.
	ConsumableCapacity bool
	// DeviceTaints permits taints in slices, and tolerations.
	DeviceTaints bool
	// TaintRuleVersion is the version of resource.k8s.io that has DeviceTaintRules, such as v1, or empty.
	TaintRuleVersion string
	// BindingConditions permits devices that Pods are bound to only after their drivers agree.
	BindingConditions bool
	// ExtendedResources permits classes that Pods ask for as an extended resource.
	ExtendedResources bool
	// PodGroups permits groups of Pods that are placed together, and claims that are reserved for them.
	PodGroups bool
	// Quotas says that a controller keeps the status of ResourceQuotas.
	Quotas bool
}
