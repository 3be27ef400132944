// Package observe has the caches of all that the controllers observe: Nodes, Pods, ResourceClaims and ResourceSlices.
// They start and sync as one; the controllers add handlers and read.
//
// In: watches. Out: what plans need of an object, most of it encoded, and indexes. It never knows what rests on it.
package observe
