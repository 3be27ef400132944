// Package devicehealth shows the health of devices in the status of Pods, as a kubelet does (KEP-4680,
// Manager.UpdateAllocatedResourcesStatus in pkg/kubelet/cm/dra).
//
// A plan.PodView goes in, and container statuses or a patch of them come out. Drivers with templates take
// the health of a device from its taints; real drivers report it.
package devicehealth
