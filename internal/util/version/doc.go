// Package version has the version of the programs.
package version
