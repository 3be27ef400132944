// Package plan works out what slices there should be, and the writes that make those
// that are there so. It writes nothing itself.
//
// The rules of publication are those of
// k8s.io/dynamic-resource-allocation/resourceslice: obsolete slices are deleted, then
// others updated, then new ones created; the generation rises when more than one slice
// changes or a slice is added. So the scheduler never sees a complete pool that is
// wrong.
package plan
