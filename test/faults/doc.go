// Package faults runs the sidecar where everything fails: behind a proxy that
// delays, refuses and cuts its requests by a seeded schedule, with an API
// server, an etcd and a controller manager that stop and start, and killed at
// any point, while Nodes, Pods and templates come and go. When the faults are
// over, the cluster must be what an oracle makes of the templates, Nodes and
// Pods alone.
//
// Now and then two sidecars run at once, and both believe to be the only one:
// they must not agree on who acts, but on what is right. The clock of a sidecar
// cannot be set without root; where it is compared with that of another machine,
// package claims tests with a clock of its own.
//
// A seed gives the workload, the schedule, and what becomes of the n-th request
// of a kind to an object. When each thing happens is up to the machine, so a
// seed that failed may have to be run more than once:
//
//	go test ./faults -run TestSeeds -seed 123
package faults
