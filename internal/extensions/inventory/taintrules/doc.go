// Package taintrules reads the DeviceTaintRules of a cluster, in whichever version its
// API server has them.
package taintrules
