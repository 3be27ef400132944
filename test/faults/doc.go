// Package faults runs the sidecar where everything fails: behind a proxy that
// delays, refuses and cuts its requests by a seeded schedule, with an API
// server, an etcd and a controller manager that stop and start, killed at any
// point and with a clock that jumps, while Nodes, Pods and templates come and go.
// When the faults are over, the cluster must be what an oracle makes of the
// templates, Nodes and Pods alone. The sidecar must not have asked for more than
// there was to do, and must leave no goroutine behind when it ends.
//
// A seed chooses how sidecars share the work: one alone, two that both believe to
// be the only one, or three with a leader or with the leases of nodes. They must not
// agree on who acts, but on what is right. Each has a proxy of its own, so that it
// sees the changes of one resource up to two seconds later than those of others, or
// nothing at all. They are killed, stopped and frozen, lose the lead, and leases
// move. A seed also chooses by what nodes are selected, and nodes enter and leave
// the selection.
//
// Not only the end counts: no pool may go that the templates and its node had exist
// all the time, no Pod may wait without an event that says why, all sidecars must
// show the same devices, and their counters must agree with what there is.
//
// The clock of a machine cannot be set without root, so the sidecar is built with a
// package time whose wall clock goes wrong when it is told to.
//
// No verdict depends on how busy the machine is: what is to come is waited for as
// long as something takes that will never come, and times are only printed.
//
// Once all is right, nodes leave the selection, which no sidecar can have missed by
// a restart. Then the configuration is edited over all its carriers, round by
// round: documents are refused, contradict each other, go, come back and move, and
// sidecars are started in between, which do not know what was good before. A model
// says what may be in force, and a watch of the slices that nothing goes which no
// valid document retires.
//
// A seed gives the workload, the schedule, and what becomes of the n-th request
// of a kind to an object. When each thing happens is up to the machine, so a
// seed that failed may have to be run more than once:
//
//	go test ./faults -run TestSeeds -seed 123
//
// Package mutants proves that the seeds find what they are for: it puts faults that
// kwok-dra once had back, one at a time, and a seed must fail.
//
// Apart from that, hostile Nodes, templates and claims do harm, one at a time, and
// the other Nodes are to be served as soon as without.
package faults
