// Package why is the command kubectl dra why.
package why
