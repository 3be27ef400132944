// Package helm holds the Helm chart against the overlays, with Helm itself. It has
// a module of its own, for what Helm requires is much.
package helm
