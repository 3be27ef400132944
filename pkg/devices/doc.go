// Package devices turns templates and a node into the resource pools that
// should exist. Everything in it is pure: the same templates and node always
// give the same pools, so that a restart finds nothing to write.
package devices
