// Package preview works out what a sidecar would write that starts now.
package preview
