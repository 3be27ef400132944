// Package kubectldra runs the plugin of kubectl on a cluster without kwok-dra and without kwok: tests write what
// drivers and kubelets would.
package kubectldra
