// Package fit is the command kubectl dra fit.
package fit
