// Package devices turns ResourcePoolTemplates and a Node into the resource pools that should exist.
// Templates and a Node go in, pools with their devices, counter sets and slices come out. It is pure:
// the same input gives the same pools, so that a restart finds nothing to write, and it never reads
// a cache, a clock or the API server.
package devices
