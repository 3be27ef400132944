// Package config reads the kinds of kwok-dra's configuration and keeps one validated set of them in
// force.
//
// In: documents in files, ConfigMaps and custom resources. Out: the set in force, and what became
// of each document. It never retires anything because a document is broken: decoding is strict, a
// source is taken whole or not at all, and its last good version stays.
package config
