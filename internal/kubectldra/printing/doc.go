// Package printing prints answers as kubectl does: as tables for people, and as objects for programs.
package printing
