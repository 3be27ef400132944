// Package nodeserver plays the kubelet's server for Pods of drivers on fake nodes: kubectl exec and
// kubectl port-forward. It is for tests that reach a driver's sockets and files in that way.
//
// Paths of the Pod's hostPath volumes lead into the folder of its node below kwok-dra's directory of
// plugins. Requests for all other Pods go on to kwok.
package nodeserver
