// Package reading reads a cluster as kubectl does: with kubectl's flags, in pages, in protobuf, and without
// what the user may not see.
package reading
