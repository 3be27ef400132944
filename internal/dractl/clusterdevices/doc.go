// Package clusterdevices says what devices a cluster has and in which state they are, by the objects of the
// cluster alone: slices of any driver, claims, Pods and events. It is pure.
package clusterdevices
