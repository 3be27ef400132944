// Package schedule tells which Pods get which devices on which nodes, and why
// the others get none. It asks the allocator of the scheduler itself, so what is
// said here of one node is what the scheduler does there.
package schedule
