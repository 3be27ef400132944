// Package selection finds templates that select no node. Templates and Nodes go in; those templates come
// out, each with its nearest miss: the node that it misses by the least, and by which requirements. Only
// the Watcher reads caches, and none of it writes.
package selection
