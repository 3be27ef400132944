// Package inventory reports the state of each published device: whether it is
// free, allocated, prepared or tainted, and who uses it. It keeps nothing: each
// inventory is taken from the caches on request.
package inventory
