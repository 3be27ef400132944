package main

import (
	"context"
	"errors"
	"path/filepath"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

var trainerManager = manager{
	name:          "trainer",
	module:        module.Version{Path: "github.com/kubeflow/trainer/v2", Version: "v2.2.1"},
	command:       "/cmd/trainer-controller-manager",
	manifests:     []string{"manifests/base/crds", "manifests/base/rbac", "manifests/base/webhook"},
	configuration: "manifests/base/manager/controller_manager_config.yaml",
	namespace:     "kubeflow-system",
	account:       "kubeflow-trainer-controller-manager",
	bare:          true,
	second:        true,
	settings: func(string) map[string]any {
		return map[string]any{"certManagement": map[string]any{"enable": false}}
	},
}

// trainer is a story of training on several nodes. Trainer makes a JobSet of it.
var trainer = suite{
	name:     trainerManager.name,
	title:    "[Kubeflow Trainer](#kubeflow-trainer), a story of ours",
	tests:    build.Tests{Module: trainerManager.module},
	commands: []command{jobSetManager.program(), trainerManager.program()},
	install:  installTrainer,
	stories:  []story{{name: "a TrainJob whose nodes claim GPUs runs to its end", run: trainJobRuns}},
}

func installTrainer(ctx context.Context, w *world) (*installation, error) {
	below, err := jobSetManager.install(ctx, w)
	if err != nil {
		return nil, err
	}
	above, err := trainerManager.install(ctx, w)
	if err != nil {
		return nil, err
	}
	return &installation{logs: map[string]string{"jobset.log": below.logs["manager.log"], "manager.log": above.logs["manager.log"]}}, nil
}

func trainJobRuns(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("trainer"), "training.yaml"), func() error {
		_, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=condition=Complete", "--timeout=2m", "trainjob/training")
		return errors.Join(err, w.endedWithClaims(ctx, 4))
	})
}
