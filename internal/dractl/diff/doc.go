// Package diff is the command kwok-dractl diff.
package diff
