// Package tabletest renders the tables of commands at several widths, for tests.
package tabletest
