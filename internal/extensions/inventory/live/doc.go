// Package live takes inventories of what a running kwok-dra knows: what the caches have,
// and what is prepared.
package live
