// Package installation says which installation of kwok-dra an object belongs to.
//
// Several installations may share a cluster, each with nodes of its own. A label that all of them write identifies the
// program that made an object, not the installation that may change it. So each installation records itself on its
// objects, and leaves the objects of others alone.
package installation
