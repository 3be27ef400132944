// Package resourceslice publishes, repairs and retires ResourceSlices.
//
// In: Nodes and slices from the caches, the set in force. Out: writes of slices, one API call at a
// time. It never plans: package plan works out what there should be, and the writes between the
// two. Start reading at Publisher.
package resourceslice
