// Package expectations tells a controller which of its own writes its cache has not seen yet. A plan made without them
// would repeat them. Unseen is for one object that is planned by itself, Expectations is for several that are planned
// together.
//
// Every wait for the cache ends: what waits for longer than Limit is requeued.
//
// The package does the work of k8s.io/kubernetes/pkg/controller/util/consistency. It also tells the events of own
// writes, which need no reconciliation, from those of others.
package expectations
