// Package trial plays stories on a cluster for the commands that judge a program: it records what happens, shrinks a
// story that violates a statement, and reports.
package trial
