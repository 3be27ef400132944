package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

var lwsManager = manager{
	name:          "lws",
	module:        module.Version{Path: "sigs.k8s.io/lws", Version: "v0.9.0"},
	command:       "/cmd",
	manifests:     []string{"config/default"},
	configuration: "config/manager/controller_manager_config.yaml",
	namespace:     "lws-system",
	account:       "lws-controller-manager",
	settings:      jobSetManager.settings,
}

// lws are stories of groups of a leader and workers.
var lws = suite{
	name:     lwsManager.name,
	title:    "[LeaderWorkerSet](#leaderworkerset), stories of ours",
	tests:    build.Tests{Module: lwsManager.module},
	commands: []command{lwsManager.program()},
	install:  lwsManager.install,
	stories: []story{
		{name: "groups run, and scaling frees and claims GPUs", run: groupsScale},
		{name: "an update replaces groups on the GPUs that they had", run: groupsUpdate},
	},
}

// A group has a leader with two GPUs and two workers with one each, and two groups have all.
const (
	groupPods    = 3
	groupDevices = 4
)

func groupsScale(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("lws"), "serving.yaml"), func() error {
		if _, err := w.groupsRun(ctx, 2); err != nil {
			return err
		}
		for _, groups := range []int{1, 2} {
			if _, err := w.Kubectl(ctx, "-n", storyNamespace, "scale", "--replicas="+strconv.Itoa(groups), "lws/serving"); err != nil {
				return err
			}
			if _, err := w.groupsRun(ctx, groups); err != nil {
				return err
			}
		}
		return nil
	})
}

func groupsUpdate(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("lws"), "serving.yaml"), func() error {
		before, err := w.groupsRun(ctx, 2)
		if err != nil {
			return err
		}
		// The update waits for devices that only the groups of before have.
		const newImage = `[{"op": "replace", "path": "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image", "value": "registry.k8s.io/pause:3.10.1"}]`
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "patch", "lws/serving", "--type=json", "-p", newImage); err != nil {
			return err
		}
		gone := []string{"-n", storyNamespace, "wait", "--for=delete", "--timeout=2m"}
		for _, claim := range before {
			gone = append(gone, "resourceclaim/"+claim.Metadata.Name)
		}
		if _, err := w.Kubectl(ctx, gone...); err != nil {
			return err
		}
		_, err = w.groupsRun(ctx, 2)
		return err
	})
}

// groupsRun returns the claims of the Pods of so many groups when all are ready, and no
// claims are there but these.
func (w *world) groupsRun(ctx context.Context, groups int) ([]object, error) {
	for _, count := range []string{"replicas", "readyReplicas", "updatedReplicas"} {
		condition := fmt.Sprintf("--for=jsonpath={.status.%s}=%d", count, groups)
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", condition, "--timeout=1m", "lws/serving"); err != nil {
			return nil, err
		}
	}
	var claims []object
	err := until(ctx, seen, func(ctx context.Context) error {
		var err error
		if claims, err = w.objects(ctx, "resourceclaims"); err != nil {
			return err
		}
		if len(claims) != groups*groupPods {
			return fmt.Errorf("count the claims of %d groups: want %d, got %d", groups, groups*groupPods, len(claims))
		}
		return prepared(claims, groups*groupDevices)
	})
	return claims, err
}
