// Package fleet makes fake nodes, and Pods with claims, on a real cluster for
// those who measure what becomes of them.
package fleet

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// Workers is the concurrency of kwok-dra and of all who are compared with it.
const Workers = 16

// Template gives every fake node 8 devices of 9 attributes.
//
//go:embed template.yaml
var Template string

// Devices is how many devices a node has by Template.
const Devices = 8

// NewNode is a node that kwok plays.
func NewNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: "p5.48xlarge"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
}

// InParallel runs f for 0 to count-1 by the workers.
func InParallel(count int, f func(i int) error) error {
	var running sync.WaitGroup
	errs := make([]error, Workers)
	for worker := range Workers {
		running.Go(func() {
			for i := worker; i < count && errs[worker] == nil; i += Workers {
				errs[worker] = f(i)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// ApplyKwokStage applies one of kwok's own Stages, by its path below
// kustomize/stage.
func ApplyKwokStage(ctx context.Context, c *cluster.Cluster, name string) error {
	module, err := sidecar.ModuleDir(ctx, "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "apply", "-f", filepath.Join(module, "kustomize/stage", name))
	return err
}

// RestartKwok has kwok look at all nodes anew: a Stage that comes while it runs
// does not reach nodes that are there until something changes them.
func RestartKwok(ctx context.Context, c *cluster.Cluster) error {
	if err := c.StopComponent(ctx, cluster.Kwok); err != nil {
		return err
	}
	return c.StartComponent(ctx, cluster.Kwok)
}

// ConfigMap is the sidecar's, as namespace/name.
const ConfigMap = configMapNamespace + "/" + configMapName

const configMapNamespace, configMapName = "default", "kwok-dra"

// Configure writes the sidecar's ConfigMap.
func Configure(ctx context.Context, client kubernetes.Interface, documents string) error {
	configMaps := client.CoreV1().ConfigMaps(configMapNamespace)
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName}}
	if _, err := configMaps.Create(ctx, empty, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"templates.yaml": documents}})
	if err != nil {
		return fmt.Errorf("encode ConfigMap: %w", err)
	}
	if _, err := configMaps.Patch(ctx, configMapName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write ConfigMap: %w", err)
	}
	return nil
}

// StartSidecar starts a sidecar that reads the ConfigMap, and returns when it is
// ready.
func StartSidecar(ctx context.Context, c *cluster.Cluster, kubeconfig string, arguments ...string) (*sidecar.Process, error) {
	all := []string{"--kubeconfig", kubeconfig, "--config-map", ConfigMap, fmt.Sprintf("--workers=%d", Workers), "-v=0"}
	return sidecar.Start(ctx, c, append(all, arguments...)...)
}

// Machine names the machine and the versions that figures are of.
func Machine(c *cluster.Cluster) string {
	versions := c.Versions()
	return fmt.Sprintf("Kubernetes %s, kwok %s, %s, %s, %d CPUs", versions.Kubernetes, versions.Kwok, runtime.Version(), processorName(), runtime.NumCPU())
}

// processorName names the machine's processor, where that can be told.
func processorName() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, found := strings.CutPrefix(lines.Text(), "model name"); found {
			return strings.Trim(name, " \t:")
		}
	}
	return runtime.GOARCH
}
