// Package kubelet stands in for the kubelets of fake nodes towards real DRA drivers: the
// plugins of a driver register through sockets in the folder of their node, publish
// their slices themselves, and are asked by gRPC to prepare and unprepare the claims of the
// node's Pods. There is no container runtime: what a driver returns for the containers is
// kept in the checkpoint and shown in the Pod's status.
//
// It follows pkg/kubelet/cm/dra and pkg/kubelet/pluginmanager of Kubernetes 1.36: their
// order, timeouts, backoffs and error texts.
package kubelet
