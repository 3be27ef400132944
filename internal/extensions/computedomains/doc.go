// Package computedomains plays the node's half of NVIDIA's ComputeDomains, of which NVIDIA's own controller is the other
// half: on fake nodes it does what compute-domain-kubelet-plugin and compute-domain-daemon of dra-driver-nvidia-gpu
// 0.5.0 do on real ones.
//
// The plugin labels a node for the first Pod with a channel there, so that the controller's DaemonSet runs a daemon on
// it, and prepares the channel only when that daemon is ready. The daemons of the nodes that share an NVLink fabric
// (a clique) list themselves in one ComputeDomainClique, from which the controller makes the status of the ComputeDomain.
//
// Nodes and daemon Pods are reconciled by the name of the node, cliques by their own.
package computedomains
