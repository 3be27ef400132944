// Package general holds the Stages that take Pods through their life as a
// kubelet does, those with claims by way of kwok-dra, and the configuration of
// kwok-dra that goes with them. They take the place of all of kwok's own general
// Pod Stages.
package general

import (
	_ "embed"
)

var (
	// PodCreate is the Stage that gives Pods without claims their first status;
	// those with claims have it from kwok-dra.
	//go:embed pod-create.yaml
	PodCreate string

	// PodPrepare is the Stage that has kwok-dra prepare the claims of a Pod.
	//go:embed pod-prepare.yaml
	PodPrepare string

	// PodInitContainerRunning is the Stage that starts the init containers.
	//go:embed pod-init-container-running.yaml
	PodInitContainerRunning string

	// PodInitContainerCompleted is the Stage that ends the init containers.
	//go:embed pod-init-container-completed.yaml
	PodInitContainerCompleted string

	// PodReady is the Stage that starts the containers.
	//go:embed pod-ready.yaml
	PodReady string

	// PodComplete is the Stage that ends the containers of a Job's Pod.
	//go:embed pod-complete.yaml
	PodComplete string

	// PodUnprepare is the Stage that has kwok-dra unprepare the claims of a Pod
	// that ends.
	//go:embed pod-unprepare.yaml
	PodUnprepare string

	// PodTerminate is the Stage that writes the last status of a Pod with claims.
	//go:embed pod-terminate.yaml
	PodTerminate string

	// PodDelete is the Stage that deletes Pods, those with claims after their last
	// status.
	//go:embed pod-delete.yaml
	PodDelete string

	// KwokDRAConfiguration is the configuration, not a Stage, with which kwok-dra
	// prepares and unprepares when these Stages say so.
	//go:embed kwok-dra-configuration.yaml
	KwokDRAConfiguration string
)
