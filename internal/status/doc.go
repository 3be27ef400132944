// Package status writes the status of the custom resources that configure kwok-dra: whether they
// are in force, and where they are published.
//
// In: what became of each document, and the publisher's outcomes. Out: status patches. It never
// writes over another installation's status.
package status
