// Package dractl is the command kwok-dractl.
package dractl
