// Package output prints the results of commands in kubectl's formats.
package output
