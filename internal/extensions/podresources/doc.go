// Package podresources answers on each fake node what a kubelet answers on its PodResources socket.
//
// In go the Pods of a node, and what drivers have prepared for them; out come the answers of k8s.io/kubelet's podresources v1.
// It never writes to the API, and has no goroutine unless it is switched on.
package podresources
