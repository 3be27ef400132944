// Package follow shows an answer again whenever it changes: it watches the cluster, and redraws a terminal or
// appends to a pipe.
package follow
