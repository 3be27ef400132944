// Package usage says how much of a device a Pod uses, by annotations of the Pod. All in it is
// pure: a value follows from the annotation, a seed and the time since the Pod has started.
package usage
