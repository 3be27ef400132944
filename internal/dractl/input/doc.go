// Package input reads Pods, what makes Pods, and all that decides where these get devices, from files
// and from a cluster.
package input
