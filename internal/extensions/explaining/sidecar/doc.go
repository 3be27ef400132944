// Package sidecar explains what kwok-dra itself does for Pods on fake nodes: what it would prepare, what it waits for, and
// which of its templates publish nothing. It is the part of an answer that needs kwok-dra's configuration, so programs for
// any cluster do not link it.
package sidecar
