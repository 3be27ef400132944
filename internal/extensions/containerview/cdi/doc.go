// Package cdi reads specs of the Container Device Interface: the files in which drivers
// say what a container runtime does to a container that has their devices.
package cdi
