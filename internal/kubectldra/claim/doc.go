// Package claim is the command that says what has happened to a claim, and when.
package claim
