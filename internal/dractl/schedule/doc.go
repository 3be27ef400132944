// Package schedule is the command that shows which Pods get which devices on which nodes,
// and why other Pods do not fit.
package schedule
