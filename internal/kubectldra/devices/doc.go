// Package devices is the command kubectl dra devices.
package devices
