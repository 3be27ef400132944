// Package plan works out what Pods and their claims need now. It makes the decisions of the kubelet:
// ForPod performs its checks, and decides what the claims of a Pod show and what the Pod's status says;
// ForClaim decides which entries of a claim are set, renewed or withdrawn.
//
// A view goes in, and a plan, which is a value, comes out. Nothing in this package reads or writes the
// API, or waits. A plan that lacks something says so, and the caller reads it and plans again.
package plan
