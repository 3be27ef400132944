// Package claims is the command that says what each claim has, and for whom.
package claims
