// Package checkscheduler is the command kwok-dractl check-scheduler, a contract test of schedulers that
// allocate devices. It plays stories on a cluster, records what happens, has pkg/drajudge judge that, and
// shrinks a story that violates a statement.
package checkscheduler
