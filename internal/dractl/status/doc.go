// Package status shows the devices and claims of a cluster. It only reads, and
// only what any driver publishes.
package status
