// Package app puts the sidecar together: options, clients, the core's controllers, extensions and the HTTP server.
//
// In: the command line and a list of extensions. Out: a running program. It never knows a single extension.
package app
