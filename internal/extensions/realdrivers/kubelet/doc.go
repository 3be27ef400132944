// Package kubelet stands in for the kubelets of fake nodes towards real DRA drivers. The plugins of a
// driver register through sockets in the folder of their node, publish their slices themselves, and
// prepare and unprepare the claims of the node's Pods by gRPC. There is no container runtime: what a
// driver returns for containers is kept in the checkpoint and shown in the Pod's status.
//
// The package follows pkg/kubelet/cm/dra and pkg/kubelet/pluginmanager of Kubernetes 1.36: their order,
// timeouts, backoffs and error texts.
//
// A kubelet of a node (node.go) scans for sockets (plugin), calls drivers in the background (calls.go),
// and keeps the checkpoint (claiminfo). Driver (driver.go) answers plans from these without changing them.
package kubelet
