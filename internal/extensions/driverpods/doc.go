// Package driverpods watches the Pods in which the plugins of drivers run. The templates in force go in,
// which select Pods by driverPod; out come these templates, bound to the driver Pods of a node, and the
// nodes where those Pods have changed. It never writes.
package driverpods
