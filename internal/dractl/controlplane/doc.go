// Package controlplane runs an API server with its etcd, and on request controllers, as processes on
// loopback, for commands that need an empty cluster.
package controlplane
