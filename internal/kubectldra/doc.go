// Package kubectldra is the plugin kubectl dra. It reads what every DRA driver, the scheduler and the
// kubelets write, needs nothing else in the cluster, and writes nothing.
package kubectldra
