// Package chaos holds the Stages that break a node or its DRA plugin. They need
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

	// NodeUnreachable is the Stage that has nobody hear from a node while its label
	// is set. Its plugin runs on.
	//go:embed node-unreachable.yaml
	NodeUnreachable string

	// NodeCrash is the Stage that has a node be dead while its label is set.
	//go:embed node-crash.yaml
	NodeCrash string

	// NodeBoot is the Stage that sets the condition to False when that label is
	// gone: the kubelet wipes the ResourceSlices when it starts.
	//go:embed node-boot.yaml
	NodeBoot string
)
