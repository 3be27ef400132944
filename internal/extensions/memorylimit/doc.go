// Package memorylimit says that GOMEMLIMIT is too low for the fleet.
//
// In: what Go measures of its garbage collector. Out: a line of the log. It changes no limit.
package memorylimit
