// Package resourceslice publishes and retires ResourceSlices.
//
// It observes nodes and the slices that kwok-dra owns, has package plan work out what
// there should be and the writes between the two, and makes these one API call at a
// time. Start reading at Publisher.
package resourceslice
