package main

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// karpenterModule is of the version that test/karpenter has.
var karpenterModule = module.Version{Path: "sigs.k8s.io/karpenter", Version: "v1.14.1"}

var karpenterDRA = suite{
	name:  "karpenter",
	title: "[Karpenter](https://github.com/kubernetes-sigs/karpenter), `test/suites/dra`",
	tests: build.Tests{Module: karpenterModule, Package: karpenterModule.Path + "/test/suites/dra"},
	// kwok-dra is the suite's driver: it reads what the suite tells Karpenter's own driver.
	sidecar: []string{"--adapters", "DRAConfig"},
	build:   karpenter.Binary,
	install: installKarpenter,
}

// installKarpenter starts Karpenter by its own defaults, as the suite wants it: it makes
// all nodes of the suite, but none for Pods with claims.
func installKarpenter(ctx context.Context, w *world) (*installation, error) {
	source, err := gomod.Download(ctx, sidecar.Root(), karpenterModule.String())
	if err != nil {
		return nil, err
	}
	definition := filepath.Join(source.Dir, "dra-kwok-driver", "pkg", "apis", "crds", "test.karpenter.sh_draconfigs.yaml")
	if _, err := w.Kubectl(ctx, "apply", "-f", definition); err != nil {
		return nil, err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return nil, err
	}
	step := progress.Start(os.Stderr, "Starting Karpenter")
	err = karpenter.Start(ctx, w.Cluster, karpenter.Options{})
	step.Finish(err)
	if err != nil {
		return nil, err
	}
	// It ends with the cluster.
	return &installation{logs: map[string]string{"controller.log": filepath.Join(w.Logs(), karpenter.Component+".log")}}, nil
}
