// Package plugin is the kubelet's side of the connections to the DRA plugins of one node. Plugins register through sockets
// and are called through others. The package stands in for pkg/kubelet/pluginmanager and pkg/kubelet/cm/dra/plugin of
// Kubernetes 1.36.
package plugin
