package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// kueueModule has both the suites and the manager.
var kueueModule = module.Version{Path: "sigs.k8s.io/kueue", Version: "v0.19.2"}

// kueueCommand is the manager.
var kueueCommand = command{module: kueueModule, path: "/cmd/kueue"}

// Names in Kueue's manifests.
const (
	kueueNamespace = "kueue-system"
	kueueManager   = "kueue-controller-manager"
	kueueSecret    = "kueue-webhook-server-cert"
)

// kueueFeatures are those of Kueue's own clusters.
var kueueFeatures = switchOn("DynamicResourceAllocation", "DRAExtendedResource", "DRAPartitionableDevices", "DRAConsumableCapacity")

// kueueSuite is one of Kueue's suites for DRA. Each has a configuration of the manager, and
// a shape of the driver's devices, of its own.
func kueueSuite(folder string) suite {
	return suite{
		name:     "kueue-" + folder,
		title:    "[Kueue](#kueue), `test/e2e/dra/" + folder + "`",
		tests:    build.Tests{Module: kueueModule, Package: kueueModule.Path + "/test/e2e/dra/" + folder},
		cluster:  cluster.Options{FeatureGates: kueueFeatures},
		commands: []command{kueueCommand},
		install:  func(ctx context.Context, w *world) (*installation, error) { return installKueue(ctx, w, folder, nil) },
	}
}

// kueue is Kueue in a cluster. Its Deployment has fake Pods, which the suites wait for; its
// manager is a process.
type kueue struct {
	*world
	// given is the folder of Kueue's manifests for a suite.
	given string
	// dir has the files of the process.
	dir string
	// variables are more environment variables of the process. Optional.
	variables map[string]string
}

func installKueue(ctx context.Context, w *world, folder string, variables map[string]string) (*installation, error) {
	k, err := newKueue(ctx, w, folder)
	if err != nil {
		return nil, err
	}
	k.variables = variables
	step := progress.Start(os.Stderr, "Starting Kueue "+kueueModule.Version)
	err = k.start(ctx, w.programs[kueueCommand])
	step.Finish(err)
	if err != nil {
		return nil, err
	}
	return &installation{logs: map[string]string{"manager.log": k.log()}}, nil
}

func newKueue(ctx context.Context, w *world, folder string) (kueue, error) {
	source, err := gomod.Download(ctx, sidecar.Root(), kueueModule.String())
	if err != nil {
		return kueue{}, err
	}
	// Kustomize follows links before it looks for what is relative.
	dir, err := filepath.EvalSymlinks(filepath.Dir(w.Kubeconfig()))
	if err != nil {
		return kueue{}, fmt.Errorf("find directory of the cluster: %w", err)
	}
	return kueue{
		world: w,
		given: filepath.Join(source.Dir, "test", "e2e", "config", "dra", folder),
		dir:   filepath.Join(dir, "kueue"),
	}, nil
}

// start returns when the manager serves its webhooks.
func (k kueue) start(ctx context.Context, program string) error {
	if err := k.apply(ctx); err != nil {
		return err
	}
	if err := k.startManager(ctx, program); err != nil {
		return err
	}
	if err := k.mountCertificate(ctx); err != nil {
		log, _ := os.ReadFile(k.log())
		return fmt.Errorf("%w, log of the manager:\n%s", err, log)
	}
	return awaitWebhooks(ctx, kueueManager, k.SparePort(), k.log())
}

func (k kueue) log() string { return filepath.Join(k.Logs(), kueueManager+".log") }

// certificates is the folder in which the manager waits for its certificate.
func (k kueue) certificates() string { return filepath.Join(k.dir, "certificates") }

// apply applies Kueue's manifests for the suite, changed for a manager that is a process.
func (k kueue) apply(ctx context.Context) error {
	if err := os.MkdirAll(k.certificates(), 0o700); err != nil {
		return fmt.Errorf("create directory of Kueue: %w", err)
	}
	changes := filepath.Join(manifests("kueue"), "manager")
	service := loopbackService(map[string]any{"name": "kueue", "namespace": kueueNamespace}, k.SparePort())
	if err := (kustomization{dir: k.dir, given: []string{k.given}, component: changes, service: service}).write(); err != nil {
		return err
	}
	// Not all of the definitions fit into the annotation of a client-side apply.
	if _, err := k.Kubectl(ctx, "apply", "--server-side", "-k", k.dir); err != nil {
		return err
	}
	return k.AwaitDefinitions(ctx)
}

// startManager starts the manager with the rights and the arguments that it has in its Pod.
func (k kueue) startManager(ctx context.Context, program string) error {
	configuration := filepath.Join(k.dir, "configuration.yaml")
	given := filepath.Join(k.given, "controller_manager_config.yaml")
	if err := writeConfiguration(configuration, given, kueueProcess(k.SparePort(), k.certificates())); err != nil {
		return err
	}
	kubeconfig, err := sidecar.Kubeconfig(ctx, k.Cluster, kueueNamespace, kueueManager)
	if err != nil {
		return err
	}
	return k.AddComponentWithEnv(k.variables, kueueManager, program, "--kubeconfig="+kubeconfig,
		"--config="+configuration, "--zap-devel", "--zap-log-level=3")
}

// kueueProcess is what the configuration of a manager that is a process has besides.
func kueueProcess(port int, certificates string) map[string]any {
	return map[string]any{
		"health":         map[string]any{"healthProbeBindAddress": "0"},
		"metrics":        map[string]any{"bindAddress": "0"},
		"webhook":        map[string]any{"host": "127.0.0.1", "port": port, "certDir": certificates},
		"leaderElection": map[string]any{"resourceNamespace": kueueNamespace},
		// The certificate is for the name of that Service.
		"internalCertManagement": map[string]any{"enable": true, "webhookServiceName": "kueue"},
		// Nobody could ask for it: its APIServices are left out.
		"featureGates": map[string]any{"VisibilityOnDemand": false},
	}
}

// mountCertificate does what a kubelet does with the Secret that the manager fills.
func (k kueue) mountCertificate(ctx context.Context) error {
	if _, err := k.Kubectl(ctx, "-n", kueueNamespace, "wait", `--for=jsonpath={.data.tls\.key}`, "--timeout=2m", "secret/"+kueueSecret); err != nil {
		return err
	}
	said, err := k.Kubectl(ctx, "-n", kueueNamespace, "get", "secret", kueueSecret, "-o", "json")
	if err != nil {
		return err
	}
	var secret struct{ Data map[string][]byte }
	if err := json.Unmarshal([]byte(said), &secret); err != nil {
		return fmt.Errorf("read Secret %s: %w", kueueSecret, err)
	}
	for name, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(k.certificates(), name), content, 0o600); err != nil {
			return fmt.Errorf("mount Secret %s: %w", kueueSecret, err)
		}
	}
	return nil
}
