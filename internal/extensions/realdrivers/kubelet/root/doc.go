// Package root lays out the folders that stand in for the root directories of the kubelets of fake nodes. Like
// /var/lib/kubelet, the folder of a node has plugins_registry and plugins below it.
package root
