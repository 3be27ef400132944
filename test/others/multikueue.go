package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
)

// The clusters of Kueue's suite for several clusters: the manager hands Jobs to the workers.
// The suite knows them by the names that kind gives them.
const (
	multiKueueName    = "kueue-multikueue"
	multiKueueFolder  = "whole-device"
	multiKueueManager = "kind-manager"
)

var multiKueueWorkers = []string{"kind-worker1", "kind-worker2"}

// kindServer is the host name of the API server of a cluster of kind.
func kindServer(clusterName string) string { return clusterName + "-control-plane" }

// multiKueue is Kueue's suite for claims in several clusters. The cluster of the suite is
// the manager; the workers are like it.
var multiKueue = suite{
	name:  multiKueueName,
	title: "[Kueue](#kueue), `test/e2e/multikueue/dra`",
	tests: build.Tests{Module: kueueModule, Package: kueueModule.Path + "/test/e2e/multikueue/dra"},
	cluster: cluster.Options{
		FeatureGates: kueueFeatures,
		EnableCRDs:   []string{"ClusterExec"},
		ServerNames:  []string{kindServer(multiKueueWorkers[0]), kindServer(multiKueueWorkers[1])},
	},
	commands: []command{kueueCommand},
	complete: filepath.Join(multiKueueName, "stages", "pod-exit.yaml"),
	install:  installMultiKueue,
}

// multiKueueClusters are what the suite has beside the cluster of the manager.
type multiKueueClusters struct {
	workers []*world
	proxy   *nameProxy
}

func installMultiKueue(ctx context.Context, w *world) (*installation, error) {
	clusters := &multiKueueClusters{}
	installed, err := clusters.install(ctx, w)
	if err != nil {
		return nil, errors.Join(err, clusters.stop())
	}
	return installed, nil
}

func (m *multiKueueClusters) install(ctx context.Context, manager *world) (*installation, error) {
	logs := map[string]string{}
	addresses := map[string]string{}
	kubeconfig, err := writeKindContext(ctx, manager.Cluster, multiKueueManager)
	if err != nil {
		return nil, err
	}
	kubeconfigs := []string{kubeconfig}
	for _, name := range multiKueueWorkers {
		s := manager.suite
		s.install = installMultiKueueWorker
		worker, err := startWorld(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("start cluster %s: %w", name, err)
		}
		m.workers = append(m.workers, worker)
		if addresses[kindServer(name)+":6443"], err = serverAddress(ctx, worker.Cluster); err != nil {
			return nil, err
		}
		if kubeconfig, err = writeKindContext(ctx, worker.Cluster, name); err != nil {
			return nil, err
		}
		kubeconfigs = append(kubeconfigs, kubeconfig)
		logs[name+"-kwok-dra.log"] = worker.sidecar.Log
		logs[name+"-manager.log"] = worker.installed.logs["manager.log"]
	}
	if m.proxy, err = startNameProxy(addresses); err != nil {
		return nil, err
	}
	installed, err := installKueue(ctx, manager, multiKueueFolder, map[string]string{"HTTPS_PROXY": m.proxy.url, "NO_PROXY": "127.0.0.1"})
	if err != nil {
		return nil, err
	}
	logs["manager.log"] = installed.logs["manager.log"]
	return &installation{logs: logs, kubeconfig: strings.Join(kubeconfigs, string(os.PathListSeparator)), stop: m.stop}, nil
}

func (m *multiKueueClusters) stop() error {
	var err error
	if m.proxy != nil {
		err = m.proxy.Close()
	}
	for _, worker := range m.workers {
		err = errors.Join(err, worker.stop())
	}
	return err
}

// installMultiKueueWorker has, besides Kueue, the containers of Jobs answer.
func installMultiKueueWorker(ctx context.Context, w *world) (*installation, error) {
	answers, err := yaml.Marshal(containerCommands(w.Cluster))
	if err != nil {
		return nil, fmt.Errorf("encode how containers answer: %w", err)
	}
	if _, err := w.KubectlInput(ctx, strings.NewReader(string(answers)), "apply", "-f", "-"); err != nil {
		return nil, err
	}
	return installKueue(ctx, w, multiKueueFolder, nil)
}

// containerCommands has kwok run what "kubectl exec" asks for on this machine, with a
// stand-in for curl that needs to reach the cluster.
func containerCommands(c *cluster.Cluster) map[string]any {
	path := []string{filepath.Join(manifests(multiKueueName), "container"), filepath.Dir(c.Binary("kubectl")), os.Getenv("PATH")}
	variables := []map[string]string{
		{"name": "PATH", "value": strings.Join(path, string(os.PathListSeparator))},
		{"name": "KUBECONFIG", "value": c.Kubeconfig()},
	}
	return map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1",
		"kind":       "ClusterExec",
		"metadata":   map[string]any{"name": "container"},
		"spec":       map[string]any{"execs": []any{map[string]any{"local": map[string]any{"envs": variables}}}},
	}
}

// serverAddress is the host and port of a cluster's API server.
func serverAddress(ctx context.Context, c *cluster.Cluster) (string, error) {
	server, err := c.Kubectl(ctx, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	if err != nil {
		return "", err
	}
	parsed, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("read the address of API server %q: %w", server, err)
	}
	return parsed.Host, nil
}

// writeKindContext writes a kubeconfig of a cluster that refers to no other file, and whose
// context has the name that kind gives it.
func writeKindContext(ctx context.Context, c *cluster.Cluster, name string) (string, error) {
	flattened, err := c.Kubectl(ctx, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(c.Kubeconfig()), name+".kubeconfig.yaml")
	if err := os.WriteFile(path, []byte(flattened), 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	_, err = c.Kubectl(ctx, "--kubeconfig", path, "config", "rename-context", "kwok-"+c.Name(), "kind-"+name)
	return path, err
}
