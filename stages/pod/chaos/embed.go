// Package chaos holds the Stages that have the claims of Pods fail to be
// prepared or unprepared, and their images fail to be pulled.
package chaos

import (
	_ "embed"
)

var (
	// PodPrepareFail is the Stage that sets the condition PrepareResources to
	// False when its label is set.
	//go:embed pod-prepare-fail.yaml
	PodPrepareFail string

	// PodPrepareFailReset is the Stage that sets the condition to True when the
	// label is gone and no Stage of package general does.
	//go:embed pod-prepare-fail-reset.yaml
	PodPrepareFailReset string

	// PodUnprepareFail is the Stage that sets the condition UnprepareResources to
	// False when its label is set.
	//go:embed pod-unprepare-fail.yaml
	PodUnprepareFail string

	// PodImagePullFail is the Stage that has the containers of a Pod wait for
	// their images as long as its label is set.
	//go:embed pod-image-pull-fail.yaml
	PodImagePullFail string

	// KwokDRAConfiguration is the configuration, not a Stage, with which kwok-dra
	// heeds PodPrepareFail beside the fast Stages.
	//go:embed kwok-dra-configuration.yaml
	KwokDRAConfiguration string
)
