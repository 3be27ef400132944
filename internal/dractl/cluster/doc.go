// Package cluster finds the API server as kubectl does.
package cluster
