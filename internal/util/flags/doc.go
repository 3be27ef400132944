// Package flags says in the user's words what is wrong with a flag.
package flags
