// Package slicetest has what the tests of slices and of their plans share.
package slicetest
