// Package nodes is the command kubectl dra nodes.
package nodes
