// Package waiting has Pods that wait on a real control plane, and holds the first line of the
// answer to "why" against the one true reason of each.
package waiting
