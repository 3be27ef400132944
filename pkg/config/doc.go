// Package config reads the configuration kinds of kwok-dra from their carriers
// and keeps one validated set of them.
//
// Decoding is strict and a carrier is taken whole or not at all: where one of
// its documents is invalid, its last good version stays in force.
package config
