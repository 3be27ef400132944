// Package claims prepares and unprepares the ResourceClaims of Pods on fake nodes. It stands in for the kubelet, and for
// the drivers that have templates.
//
// Pods and claims go in, from the caches; entries in status.devices of claims, and statuses and events of Pods come out.
// It never allocates or deallocates claims, and never starts containers.
//
// It has two loops. The one for Pods (podsync.go) performs the kubelet's checks, prepares the claims of a Pod, all or
// none, and sets the Pod's condition PodReadyToStartContainers. The one for claims (claimsync.go) withdraws entries that
// are no longer used, updates entries that name their Pods, and sets binding conditions.
package claims
