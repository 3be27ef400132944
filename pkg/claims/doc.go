// Package claims prepares and unprepares the ResourceClaims of Pods on fake
// nodes, in place of the kubelet and of the drivers whose templates there are.
//
// Two loops do it. The one for Pods makes the kubelet's checks, has the claims of
// a Pod prepared, all or none, and tells so in the Pod's condition
// PodReadyToStartContainers. The one for claims withdraws what is no longer used,
// keeps the Pods in reports that name them, and sets binding conditions.
//
// All that is known is in the API objects: a claim is prepared if kwok-dra has
// entries in its status.devices, a Pod if PodReadyToStartContainers is True. So a
// restart prepares what is owed and writes nothing else.
package claims
