// Package inventory tells what has become of each published device: whether it
// is free, allocated, prepared or tainted, and by whom it is used. It keeps
// nothing: an inventory is taken from the caches when someone asks for one.
package inventory
