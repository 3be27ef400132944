// Package check finds the mistakes in documents that kwok-dra reads, and their
// places.
package check
