// Package nodeload sends the requests of the kubelets and DRA drivers that fake nodes do not have, so that an API server is
// loaded as by real nodes.
//
// In: Nodes, Pods and published slices. Out: requests under the identities of nodes and drivers, whose answers change
// nothing in kwok-dra. It follows what kwok-dra does, and never holds it up.
package nodeload
