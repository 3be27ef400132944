// Package chaos holds the Stages that break the DRA plugin of a node. They need
// those of package general, which heal it.
package chaos

import (
	_ "embed"
)

var (
	// NodeDRAPluginCrash is the Stage that sets the condition PluginRegistered
	// to Unknown when its label is set: the plugin is dead.
	//go:embed node-dra-plugin-crash.yaml
	NodeDRAPluginCrash string

	// NodeKubeletRestart is the Stage that sets the condition to False once when
	// its label is set: the kubelet wipes the ResourceSlices when it starts.
	//go:embed node-kubelet-restart.yaml
	NodeKubeletRestart string

	// NodeKubeletRestartReset is the Stage that makes the next restart possible
	// when the label is gone.
	//go:embed node-kubelet-restart-reset.yaml
	NodeKubeletRestartReset string
)
