// Package clustertest has a cluster for tests in which real drivers have published devices of all kinds.
package clustertest
