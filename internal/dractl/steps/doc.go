// Package steps shows the steps of a claim.
package steps
