// Package version is the command kwok-dractl version.
package version
