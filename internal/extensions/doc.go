// Package extensions has what kwok-dra has beside its core. Each extension has a folder here, and
// is added to the sidecar by the list of All.
//
// In: the core. Out: parts to run, flags, routes, metrics, kinds of configuration. The core never
// imports any of them.
package extensions
