// Package devices turns templates and a node into the resource pools that should exist.
//
// In: templates and a Node. Out: pools with devices, counters and taints. It is pure: the same
// input always gives the same pools, so that a restart finds nothing to write.
package devices
