// Package selecting reads the devices of a cluster, and selects some of them by what the user asks for.
package selecting
