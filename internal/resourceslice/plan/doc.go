// Package plan decides which slices should exist, and which writes lead there from those that exist. It is pure: a
// snapshot goes in, a value comes out. It reads and writes nothing; what it lacks it returns as a Need.
//
// The rules of publication are those of k8s.io/dynamic-resource-allocation/resourceslice: obsolete slices are deleted,
// then others updated, then new ones created; the generation rises when more than one slice changes or a slice is
// added. So the scheduler never sees a complete pool that is wrong.
package plan
