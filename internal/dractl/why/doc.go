// Package why is the command that says why Pods with devices do not run yet.
package why
