// Package status shows devices and claims as they are in a cluster. It only
// reads, and only what any driver publishes.
package status
