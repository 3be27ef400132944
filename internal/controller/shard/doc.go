// Package shard decides which of several replicas of kwok-dra acts for what.
//
// Every replica watches everything, so that it can take over at once, and shows everything on its page; it writes only
// what it owns. Ownership does not fence: for some seconds two replicas may both act as the owner, so both must write
// the same.
package shard
