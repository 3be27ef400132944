package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

var nvidiaModule = module.Version{Path: "sigs.k8s.io/dra-driver-nvidia-gpu", Version: "v0.5.0"}

var computeDomainController = command{module: nvidiaModule, path: "/cmd/compute-domain-controller"}

// computeDomains runs NVIDIA's controller of ComputeDomains on a rack of fake trays.
var computeDomains = suite{
	name:       "nvidia-compute-domains",
	title:      `[NVIDIA's ComputeDomains](#nvidias-computedomains), stories of ours`,
	tests:      build.Tests{Module: nvidiaModule},
	sidecar:    []string{"--compute-domains"},
	moreStages: []string{"node/chaos/node-crash.yaml"},
	commands:   []command{computeDomainController},
	install:    installComputeDomains,
	stories: []story{
		{name: "a ComputeDomain of 18 nodes becomes Ready, and its Pods run once their daemons are ready", run: rackRuns},
		{name: "a daemon that is not ready makes the ComputeDomain NotReady until it is", run: daemonFails},
		{name: "a node that crashes makes the ComputeDomain NotReady until it is back", run: nodeCrashes},
		{name: "a node that is replaced joins again", run: nodeIsReplaced},
		{name: "56 racks with 1,008 nodes have a ComputeDomain each that becomes Ready, and their Pods run", run: fleetRuns, limit: 40 * time.Minute},
	},
}

// A rack has so many trays, which share one NVLink fabric.
const (
	rackTrays  = 18
	rackFabric = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31.0"
	domainName = "computedomain/rack"
	// nvidiaNamespace is where the driver would be installed.
	nvidiaNamespace = "nvidia"
)

func installComputeDomains(ctx context.Context, w *world) (*installation, error) {
	const name = "compute-domain-controller"
	source, err := gomod.Download(ctx, sidecar.Root(), nvidiaModule.String())
	if err != nil {
		return nil, err
	}
	if _, err := w.Kubectl(ctx, "apply", "-f", filepath.Join(source.Dir, "deployments", "helm", "dra-driver-nvidia-gpu", "crds")); err != nil {
		return nil, err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return nil, err
	}
	for tray := range rackTrays {
		if err := createTray(ctx, w, tray); err != nil {
			return nil, err
		}
	}
	root := filepath.Join(w.Logs(), name)
	if err := makeControllerRoot(root, source.Dir, w.programs[computeDomainController]); err != nil {
		return nil, err
	}
	kubeconfig, err := w.Kubectl(ctx, "config", "view", "--minify", "--flatten", "--raw")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(root, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		return nil, fmt.Errorf("write kubeconfig of the controller: %w", err)
	}
	err = w.AddComponent(name, "unshare", "--user", "--map-root-user", "chroot", root, "/controller", "--kubeconfig=/kubeconfig",
		"--pod-name="+name, "--namespace="+nvidiaNamespace, "--image-name=nvidia", "--log-verbosity-cd-daemon=2", "-v=4")
	return &installation{logs: map[string]string{name + ".log": filepath.Join(w.Logs(), name+".log")}}, err
}

// makeControllerRoot makes the root directory of the controller, which reads its templates in /templates.
func makeControllerRoot(root, source, program string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("create root directory of the controller: %w", err)
	}
	if err := os.CopyFS(filepath.Join(root, "templates"), os.DirFS(filepath.Join(source, "templates"))); err != nil {
		return fmt.Errorf("copy templates of the controller: %w", err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("copy controller: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, "controller"), content, 0o755); err != nil {
		return fmt.Errorf("copy controller: %w", err)
	}
	return nil
}

func trayName(tray int) string { return fmt.Sprintf("tray-%d", tray) }

// createTray makes a node of the rack, and returns when it is Ready.
func createTray(ctx context.Context, w *world, tray int) error {
	name := trayName(tray)
	file := filepath.Join(w.Logs(), name+".yaml")
	if err := writeYAML(file, newTray(name, rackFabric)); err != nil {
		return err
	}
	if _, err := w.Kubectl(ctx, "create", "-f", file); err != nil {
		return err
	}
	_, err := w.Kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=1m", "node/"+name)
	return err
}

// newTray is a node whose GPUs are on a fabric.
func newTray(name, fabric string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{
		"name":        name,
		"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
		"labels":      map[string]string{"kubernetes.io/hostname": name, "dra.kwok.x-k8s.io/profile": "nvidia-gb200-nvl72", "nvidia.com/gpu.clique": fabric},
	}}
}

// performOnRack performs on the rack while all of it is Ready. What the ComputeDomain had made is gone in the end.
func performOnRack(ctx context.Context, w *world, play func() error) error {
	err := w.perform(ctx, filepath.Join(manifests("nvidia-compute-domains"), "rack.yaml"), func() error {
		if err := awaitDomain(ctx, w, "Ready"); err != nil {
			return err
		}
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "status", "--timeout=1m", "deployment/training"); err != nil {
			return err
		}
		return play()
	})
	if err != nil {
		return err
	}
	return until(ctx, seen, func(ctx context.Context) error {
		left, err := w.Kubectl(ctx, "get", "-A", "-o", "name", "computedomains,computedomaincliques,daemonsets,resourceclaimtemplates")
		labeled, labelErr := w.Kubectl(ctx, "get", "nodes", "-o", "name", "-l", "resource.nvidia.com/computeDomain")
		switch err := errors.Join(err, labelErr); {
		case err != nil:
			return err
		case left+labeled != "":
			return fmt.Errorf("look for what is left of the ComputeDomain: found %s", strings.Join(strings.Fields(left+" "+labeled), ", "))
		}
		return nil
	})
}

func awaitDomain(ctx context.Context, w *world, status string) error {
	_, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=jsonpath={.status.status}="+status, "--timeout=1m", domainName)
	return err
}

// rackRuns: the status lists all trays, and no Pod was prepared before the daemon on its node was ready.
func rackRuns(ctx context.Context, w *world) error {
	return performOnRack(ctx, w, func() error {
		// The controller may say Ready by the DaemonSet, before it lists all nodes.
		err := until(ctx, seen, func(ctx context.Context) error {
			ready, err := w.Kubectl(ctx, "-n", storyNamespace, "get", domainName, "-o", `jsonpath={.status.nodes[?(@.status=="Ready")].index}`)
			if count := len(strings.Fields(ready)); err == nil && count != rackTrays {
				err = fmt.Errorf("count the ready nodes of the ComputeDomain: want %d, got %d", rackTrays, count)
			}
			return err
		})
		if err != nil {
			return err
		}
		daemons, err := conditionTimes(ctx, w, nvidiaNamespace, "Ready")
		if err != nil {
			return err
		}
		workers, err := conditionTimes(ctx, w, storyNamespace, "PodReadyToStartContainers")
		if err != nil {
			return err
		}
		if len(workers) != rackTrays {
			return fmt.Errorf("count the trays that have a Pod: want %d, got %d", rackTrays, len(workers))
		}
		for node, prepared := range workers {
			if ready, hasDaemon := daemons[node]; !hasDaemon || prepared.Before(ready) {
				return fmt.Errorf("compare the times of node %s: its Pod was prepared at %s, and the daemon ready at %s", node, prepared, ready)
			}
		}
		return nil
	})
}

// conditionTimes maps nodes to when a condition of their Pod in a namespace became True.
func conditionTimes(ctx context.Context, w *world, namespace, kind string) (map[string]time.Time, error) {
	said, err := w.Kubectl(ctx, "-n", namespace, "get", "pods", "-o", "json")
	if err != nil {
		return nil, err
	}
	var pods struct {
		Items []struct {
			Spec   struct{ NodeName string }
			Status struct {
				Conditions []struct {
					Type, Status       string
					LastTransitionTime time.Time
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(said), &pods); err != nil {
		return nil, fmt.Errorf("read Pods in namespace %s: %w", namespace, err)
	}
	times := map[string]time.Time{}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == kind && condition.Status == "True" {
				times[pod.Spec.NodeName] = condition.LastTransitionTime
			}
		}
	}
	return times, nil
}

// daemonFails has the probe of one daemon fail, and then not.
func daemonFails(ctx context.Context, w *world) error {
	return performOnRack(ctx, w, func() error {
		pod, err := w.Kubectl(ctx, "-n", nvidiaNamespace, "get", "pods", "--field-selector=spec.nodeName="+trayName(7), "-o", "name")
		if err != nil {
			return err
		}
		for _, state := range []struct{ ready, domain string }{{"False", "NotReady"}, {"True", "Ready"}} {
			patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %[1]q}, {"type": "ContainersReady", "status": %[1]q}]}}`, state.ready)
			if _, err := w.Kubectl(ctx, "-n", nvidiaNamespace, "patch", strings.TrimSpace(pod), "--subresource=status", "-p", patch); err != nil {
				return err
			}
			if err := awaitDomain(ctx, w, state.domain); err != nil {
				return err
			}
		}
		return nil
	})
}

func nodeCrashes(ctx context.Context, w *world) error {
	return performOnRack(ctx, w, func() error {
		node := "node/" + trayName(3)
		if _, err := w.Kubectl(ctx, "label", node, "node-crash.stage.kwok.x-k8s.io=true"); err != nil {
			return err
		}
		failed := awaitDomain(ctx, w, "NotReady")
		if _, err := w.Kubectl(ctx, "label", node, "node-crash.stage.kwok.x-k8s.io-"); err != nil || failed != nil {
			return errors.Join(failed, err)
		}
		return awaitDomain(ctx, w, "Ready")
	})
}

// nodeIsReplaced deletes a Node and makes it again: its Pods go, and new ones come.
func nodeIsReplaced(ctx context.Context, w *world) error {
	return performOnRack(ctx, w, func() error {
		if _, err := w.Kubectl(ctx, "delete", "node", trayName(11)); err != nil {
			return err
		}
		failed := awaitDomain(ctx, w, "NotReady")
		if err := errors.Join(failed, createTray(ctx, w, 11)); err != nil {
			return err
		}
		if err := awaitDomain(ctx, w, "Ready"); err != nil {
			return err
		}
		_, err := w.Kubectl(ctx, "-n", storyNamespace, "rollout", "status", "--timeout=1m", "deployment/training")
		return err
	})
}
