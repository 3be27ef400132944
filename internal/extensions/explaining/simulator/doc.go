// Package simulator finds out which Pods get which devices on which nodes, and why other
// Pods do not fit. It uses the scheduler's own allocator, so its result for one node is
// the scheduler's.
package simulator
