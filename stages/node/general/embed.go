// Package general holds the Stages that register and unregister the DRA plugin
// of a node as a kubelet does, and the configuration of kwok-dra that follows
// them.
package general

import (
	_ "embed"
)

var (
	// NodeDRAPluginRegister is the Stage that sets the condition
	// PluginRegistered to True some time after the node is Ready.
	//go:embed node-dra-plugin-register.yaml
	NodeDRAPluginRegister string

	// NodeDRAPluginUnregister is the Stage that sets the condition to Unknown
	// when its label is set.
	//go:embed node-dra-plugin-unregister.yaml
	NodeDRAPluginUnregister string

	// NodeDRAPluginWipe is the Stage that turns Unknown into False when the
	// kubelet wipes the plugin's ResourceSlices.
	//go:embed node-dra-plugin-wipe.yaml
	NodeDRAPluginWipe string

	// KwokDRAConfiguration is the configuration, not a Stage, with which
	// kwok-dra publishes when the condition is True and retires when it is False.
	//go:embed kwok-dra-configuration.yaml
	KwokDRAConfiguration string
)
