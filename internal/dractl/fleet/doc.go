// Package fleet reads what the sidecar would work with, templates, nodes and the
// API server, from files or from a cluster.
package fleet
