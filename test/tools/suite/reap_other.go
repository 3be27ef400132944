//go:build !linux

package main

// reapOrphans is for Linux only. Elsewhere the CPU time of clusters is missing.
func reapOrphans() error { return nil }
