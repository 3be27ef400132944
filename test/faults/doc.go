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
// # Features
//
// The fleet of a seed has one installation of kwok-dra, and files, drivers and a cluster
// that behave. What else there is in clusters are features, of which a seed has none, one
// or several after its fleet, each in an empty cluster of its own:
//
//   - installations: a second kwok-dra, with other nodes, beside a first one that owns a
//     pool and a status which belong to no node. One of them may be a version of before;
//   - strangers: a file, a plugin or a document that does what nobody should;
//   - restore: an etcd that goes back to a backup;
//   - replacements: Pods and claims that are replaced under their names while nobody sees;
//   - crashes: drivers that are down when a Pod ends;
//   - copies: a fleet with odd slices that kwok-dractl generate copies.
//
// To add one, write a file with a type that implements feature, and a line in featureKinds. Its
// function build makes what there is and starts sidecars, disturb has it go wrong, and judge
// says what is not right yet, or never will be. Judge is asked until all is right and nothing
// is written any more, after build and again after disturb. It should ask who owned what, and
// who does now; whether anybody was told; and whether all that is not concerned goes on.
// That no object is written all the time, that no sidecar takes much memory, and that none
// panics or leaves a goroutine behind is looked at for all features. A type site has what
// features are built with. What a feature does is drawn from the source of chance that it is
// made with, and none of it changes what another feature, or the fleet, does in that seed.
//
// Versions of before are built from their commits. A checkout that has none, such as a shallow
// clone, says so, and runs the version that is tested in their place.
//
// The summary has a row for each feature. To run one alone:
//
//	go test ./faults -run TestSeeds -seed 123 -features restore
//
// What a seed draws of a feature is matched too, so this runs the seeds that draw a FIFO, and
// passes over all others:
//
//	go test ./faults -run TestSeeds -seeds 50 -features 'strangers/.*FIFO'
//
// Package mutants proves that the seeds find what they are for: it puts faults that
// kwok-dra once had back, one at a time, and a seed must fail.
//
// Apart from that, hostile Nodes, templates and claims do harm, one at a time, and
// the other Nodes are to be served as soon as without.
package faults
