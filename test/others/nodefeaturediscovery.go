package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/k8stopologyawareschedwg/podfingerprint"
	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var featureDiscoveryModule = module.Version{Path: "sigs.k8s.io/node-feature-discovery", Version: "v0.18.3"}

var topologyUpdater = command{module: featureDiscoveryModule, path: "/cmd/nfd-topology-updater"}

// nodeFeatureDiscovery runs the agent that reads the Pods of its node from the PodResources socket.
var nodeFeatureDiscovery = suite{
	name:       "node-feature-discovery",
	title:      `[node-feature-discovery](#node-feature-discovery), a story of ours`,
	tests:      build.Tests{Module: featureDiscoveryModule},
	pluginsDir: true,
	sidecar:    []string{"--pod-resources"},
	commands:   []command{topologyUpdater},
	install:    installTopologyUpdater,
	stories: []story{
		{name: "the topology updater sees the Pods of its fake node through the PodResources socket", run: topologyHasPods},
	},
}

// agentNode is the node whose agent runs.
const agentNode = "node-0"

func installTopologyUpdater(ctx context.Context, w *world) (*installation, error) {
	const name = "nfd-topology-updater"
	source, err := gomod.Download(ctx, sidecar.Root(), featureDiscoveryModule.String())
	if err != nil {
		return nil, err
	}
	if _, err := w.Kubectl(ctx, "apply", "-k", filepath.Join(source.Dir, "deployment", "base", "noderesourcetopologies-crd")); err != nil {
		return nil, err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return nil, err
	}
	if _, err := w.Kubectl(ctx, "-n", "kube-system", "create", "serviceaccount", name); err != nil {
		return nil, err
	}
	rights := filepath.Join(source.Dir, "deployment", "base", "rbac-topologyupdater", "topologyupdater-clusterrole.yaml")
	if _, err := w.Kubectl(ctx, "apply", "-f", rights); err != nil {
		return nil, err
	}
	if _, err := w.Kubectl(ctx, "create", "clusterrolebinding", name, "--clusterrole="+name, "--serviceaccount=kube-system:"+name); err != nil {
		return nil, err
	}
	kubeconfig, err := sidecar.Kubeconfig(ctx, w.Cluster, "kube-system", name)
	if err != nil {
		return nil, err
	}
	settings := filepath.Join(w.Logs(), "kubelet-config.yaml")
	if err := os.WriteFile(settings, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of a kubelet: %w", err)
	}
	err = w.AddComponentWithEnv(map[string]string{"NODE_NAME": agentNode, "KUBERNETES_NAMESPACE": "kube-system"}, name, w.programs[topologyUpdater],
		"-kubeconfig="+kubeconfig, "-port="+strconv.Itoa(w.SparePort()), "-sleep-interval=1s", "-kubelet-config-uri=file://"+settings,
		"-kubelet-state-dir=", "-podresources-socket=unix://"+filepath.Join(w.plugins, agentNode, "pod-resources", "kubelet.sock"))
	return &installation{logs: map[string]string{name + ".log": filepath.Join(w.Logs(), name+".log")}}, err
}

// topologyHasPods compares the agent's fingerprint of its Pods with that of the Pods in the API.
func topologyHasPods(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("node-feature-discovery"), "serving.yaml"), func() error {
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "status", "--timeout=1m", "deployment/serving"); err != nil {
			return err
		}
		if err := until(ctx, seen, w.compareFingerprints); err != nil {
			return err
		}
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "scale", "--replicas=1", "deployment/serving"); err != nil {
			return err
		}
		return until(ctx, seen, w.compareFingerprints)
	})
}

func (w *world) compareFingerprints(ctx context.Context) error {
	const attribute = podfingerprint.Attribute
	out, err := w.Kubectl(ctx, "get", "pods", "-A", "--field-selector=spec.nodeName="+agentNode, "-o", "json")
	if err != nil {
		return err
	}
	var pods struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	if err := json.Unmarshal([]byte(out), &pods); err != nil {
		return fmt.Errorf("read the Pods of node %s: %w", agentNode, err)
	}
	want := podfingerprint.NewFingerprint(len(pods.Items))
	for _, pod := range pods.Items {
		if err := want.Add(pod.Metadata.Namespace, pod.Metadata.Name); err != nil {
			return fmt.Errorf("add Pod %s: %w", pod.Metadata.Name, err)
		}
	}
	got, err := w.Kubectl(ctx, "get", "noderesourcetopologies", agentNode, "-o", `jsonpath={.attributes[?(@.name=="`+attribute+`")].value}`)
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 || got != want.Sign() {
		return fmt.Errorf("compare %s of node %s: the agent says %q, and %d Pods have %q", attribute, agentNode, got, len(pods.Items), want.Sign())
	}
	return nil
}
