package main

import (
	"context"
	"path/filepath"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

var jobSetManager = manager{
	name:          "jobset",
	module:        module.Version{Path: "sigs.k8s.io/jobset", Version: "v0.12.0"},
	manifests:     []string{"config/default"},
	configuration: "config/components/manager/controller_manager_config.yaml",
	namespace:     "jobset-system",
	account:       "jobset-controller-manager",
	settings: func(certificates string) map[string]any {
		return map[string]any{
			"webhook":                map[string]any{"certDir": certificates},
			"internalCertManagement": map[string]any{"enable": false},
		}
	},
}

// jobSet are stories of Jobs that belong together.
var jobSet = suite{
	name:     jobSetManager.name,
	title:    "[JobSet](#jobset), a story of ours",
	tests:    build.Tests{Module: jobSetManager.module},
	commands: []command{jobSetManager.program()},
	install:  jobSetManager.install,
	stories:  []story{{name: "a JobSet whose Pods claim GPUs runs to its end", run: jobSetRuns}},
}

func jobSetRuns(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("jobset"), "training.yaml"), func() error {
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=condition=Completed", "--timeout=2m", "jobset/training"); err != nil {
			return err
		}
		return w.endedWithClaims(ctx, 6)
	})
}
