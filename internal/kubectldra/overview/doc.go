// Package overview is the command kubectl dra overview.
package overview
