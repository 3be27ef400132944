// Package resourceslice publishes and retires ResourceSlices.
//
// In go Nodes, the configuration in force and the slices that exist; out come writes of slices, one API call at a time,
// and events about what keeps templates from being published. Package plan decides what to write. Start reading at
// reconcile.
package resourceslice
