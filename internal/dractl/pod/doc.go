// Package pod is the command kwok-dractl pod: what the containers of a Pod would see of
// its devices.
package pod
