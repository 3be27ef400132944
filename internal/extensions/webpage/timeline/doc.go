// Package timeline remembers the inventories of the last hour in little memory: the newest one with
// the states of all devices and the claims that have them, and how each earlier one differs from the
// next. Any of them can be rebuilt.
package timeline
