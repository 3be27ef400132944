// Package listing is what commands share that list Pods or claims with their devices: flags, names, what they read,
// and watching.
package listing
