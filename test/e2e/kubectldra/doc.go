// Package kubectldra runs the plugin of kubectl against real API servers.
package kubectldra
