// Package claims prepares and unprepares the ResourceClaims of Pods on fake nodes. It stands in for
// the kubelet, and for the drivers that have templates.
//
// It has two loops. The one for Pods performs the kubelet's checks, prepares the claims of a Pod,
// all or none, and reports it in the Pod's condition PodReadyToStartContainers. The one for claims
// withdraws entries that are no longer used, updates entries that name their Pods, and sets binding
// conditions.
//
// In: Pods, claims and slices from the caches, the set in force, the answers of drivers. Out:
// status.devices of claims, the status of Pods, and events. It never writes entries of drivers that
// are not ours.
package claims
