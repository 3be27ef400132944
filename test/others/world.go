package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// world is a cluster that has fake nodes only, with kwok-dra.
type world struct {
	*cluster.Cluster
	sidecar *sidecar.Process
	// suite is what it was started for.
	suite suite
	// plugins is the directory with the folders of nodes, if the suite has one.
	plugins string
	// view is the directory of the container view, if the suite has one.
	view string
	// programs are the paths of the suite's commands.
	programs map[command]string
	// installed is what runs there for the suite.
	installed *installation
}

// stages are kwok's own, as files of its module.
var stages = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	podComplete,
	"pod/fast/pod-delete.yaml",
}

const podComplete = "pod/fast/pod-complete.yaml"

// stageFiles are all Stages of a suite.
func (s *suite) stageFiles(kwok string) []string {
	var files []string
	for _, stage := range stages {
		if strings.HasPrefix(stage, "pod/") && s.general || stage == podComplete && (s.complete != "" || s.endless) {
			continue
		}
		files = append(files, filepath.Join(kwok, "kustomize", "stage", filepath.FromSlash(stage)))
	}
	for _, file := range s.moreStages {
		files = append(files, filepath.Join(sidecar.Root(), "stages", filepath.FromSlash(file)))
	}
	if s.complete != "" {
		files = append(files, manifests(s.complete))
	}
	if s.general {
		for _, stage := range generalStages {
			files = append(files, filepath.Join(sidecar.Root(), "stages", "pod", "general", stage+".yaml"))
		}
		return files
	}
	return append(files, filepath.Join(sidecar.Root(), "stages", "pod", "fast", "pod-ready.yaml"))
}

// generalStages are those of stages/pod/general, without the one by which Pods of Jobs end.
var generalStages = []string{
	"pod-create", "pod-prepare", "pod-init-container-running", "pod-init-container-completed", "pod-ready",
	"pod-unprepare", "pod-terminate", "pod-delete",
}

// startWorld builds what a suite is about, starts its cluster, and returns when its nodes are ready.
func startWorld(ctx context.Context, s suite) (*world, error) {
	programs, err := s.buildCommands(ctx)
	if err != nil {
		return nil, err
	}
	kwok, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return nil, err
	}
	options := s.cluster
	options.Output = os.Stderr
	options.Config = s.stageFiles(kwok)
	view := ""
	if s.containerView {
		if view, err = os.MkdirTemp("", "view"); err != nil {
			return nil, fmt.Errorf("make the directory of the container view: %w", err)
		}
		patched, err := writeViewPatch(view)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(view))
		}
		options.EnableCRDs = []string{"Logs", "Exec"}
		options.Config = append(options.Config, patched)
	}
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(view))
	}
	w := &world{Cluster: c, suite: s, view: view, programs: programs, installed: &installation{}}
	if err := w.furnish(ctx, s); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	if s.install == nil {
		return w, nil
	}
	installed, err := s.install(ctx, w)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("install %s: %w", s.name, err), w.stop())
	}
	w.installed = installed
	return w, nil
}

// writeViewPatch writes the configuration by which kwok runs the cat of the container view, which shows files of
// the container. env is kwok's own: specs look for variables between those that every image sets.
func writeViewPatch(view string) (file string, err error) {
	programs := filepath.Join(view, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of kwok's programs: %w", err)
	}
	cat := fmt.Appendf(nil, "#!/bin/sh\nPATH=%q exec %q \"$@\"\n", os.Getenv("PATH"), filepath.Join(view, "bin", "cat"))
	if err := os.WriteFile(filepath.Join(programs, "cat"), cat, 0o755); err != nil {
		return "", fmt.Errorf("write a program for kwok: %w", err)
	}
	file = filepath.Join(view, "kwokctl.yaml")
	err = os.WriteFile(file, fmt.Appendf(nil, `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
componentsPatches:
- {name: kwok-controller, extraEnvs: [{name: PATH, value: %q}]}
`, programs+":"+os.Getenv("PATH")), 0o600)
	if err != nil {
		return "", fmt.Errorf("write the configuration of kwok: %w", err)
	}
	return file, nil
}

// stop ends the suite's own programs, and then the cluster.
func (w *world) stop() error {
	var err error
	if w.installed.stop != nil {
		err = w.installed.stop()
	}
	return errors.Join(err, w.Stop(), os.RemoveAll(w.plugins), os.RemoveAll(w.view))
}

// manifests is the folder of what a suite gets.
func manifests(suite string) string {
	return filepath.Join(sidecar.Root(), "test", "others", "manifests", suite)
}

// furnish starts kwok-dra, and makes the nodes and templates of a suite.
func (w *world) furnish(ctx context.Context, s suite) error {
	kubeconfig, err := sidecar.ServiceAccount(ctx, w.Cluster)
	if err != nil {
		return err
	}
	if _, err := w.Kubectl(ctx, "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd")); err != nil {
		return err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return err
	}
	if _, err := w.Kubectl(ctx, "apply", "-k", manifests(s.name)); err != nil {
		return err
	}
	arguments := append([]string{"--kubeconfig", kubeconfig, "--config-map", "kube-system/kwok-dra", "--enable-crds"}, s.sidecar...)
	if s.general {
		arguments = append(arguments, "--config", filepath.Join(sidecar.Root(), "stages", "pod", "general", "kwok-dra-configuration.yaml"))
	}
	if s.containerView {
		arguments = append(arguments, "--container-view", w.view)
	}
	if s.pluginsDir {
		// The paths of sockets are short.
		if w.plugins, err = os.MkdirTemp("", "p"); err != nil {
			return fmt.Errorf("make the directory of nodes: %w", err)
		}
		arguments = append(arguments, "--plugins-dir", w.plugins)
	}
	process, err := sidecar.Start(ctx, w.Cluster, arguments...)
	if err != nil {
		return err
	}
	w.sidecar = process
	nodes, err := w.Kubectl(ctx, "get", "nodes", "-o", "name")
	if err != nil || nodes == "" {
		return err
	}
	_, err = w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=2m", "nodes", "--all")
	return err
}

// keepLogs copies the logs of kwok-dra and of what is installed, which go with the cluster.
func (w *world) keepLogs(dir, suite string) error {
	logs := map[string]string{"kwok-dra.log": w.sidecar.Log}
	maps.Copy(logs, w.installed.logs)
	for name, file := range logs {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read log %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, suite+"-"+name), content, 0o644); err != nil {
			return fmt.Errorf("keep log %s: %w", name, err)
		}
	}
	return nil
}
