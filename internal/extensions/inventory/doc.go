// Package inventory is the one model of what devices are doing: the state of each
// published device, who has it, and how much is taken. The page, the metrics and
// kwok-dractl status show it. It keeps nothing: each inventory is taken from the
// caches on request.
package inventory
