// Package pods is the command that says which Pod has which device.
package pods
