// Package suggest guesses what the writer of a wrong value meant. In comes the value; out comes the
// guess, or "" if there is no good one.
package suggest
