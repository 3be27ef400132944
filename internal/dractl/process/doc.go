// Package process runs programs in process groups of their own, so that what a program
// starts ends with it.
package process
