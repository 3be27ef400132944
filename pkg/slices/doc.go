// Package slices publishes and retires ResourceSlices.
//
// It observes nodes and the slices that kwok-dra owns, asks config and devices
// for the pools that should exist, plans the writes between the two in a pure
// function, and applies them one API call at a time.
//
// The rules of publication are those of
// k8s.io/dynamic-resource-allocation/resourceslice: obsolete slices are
// deleted, then others updated, then new ones created; the generation rises
// when more than one slice changes or a slice is added. So the scheduler never
// sees a complete pool that is wrong.
package slices
