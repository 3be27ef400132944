// Package plan works out what Pods and their claims need now. It stands in for
// the decisions of the kubelet: ForPod performs its checks, and decides what the
// claims of a Pod show and what its status says; ForClaim decides which entries of a
// claim are set, renewed or withdrawn.
//
// A plan is a value. What it is made from is a view, which reads and never writes;
// applying it is the caller's. A plan that rests on what caches may not have yet asks
// to be confirmed: the caller makes it again from what the API server says.
package plan
