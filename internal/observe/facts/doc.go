// Package facts derives what plans need from a single API object: the claims of a Pod and whether it has ended, the
// node and the device entries of a claim, and the parts of a ResourceSlice that plans compare. All functions are pure.
package facts
