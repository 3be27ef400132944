// Package driverpods watches the Pods in which the plugins of drivers run. The templates in force go in,
// which select Pods by driverPod; out come the driver Pods of each node, and the nodes where they
// have changed. It never writes.
package driverpods
