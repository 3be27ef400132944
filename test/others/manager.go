package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// manager is the controller manager of another project. It runs as a process with the
// rights of its ServiceAccount; the Pods of its Deployment are fake.
type manager struct {
	name   string
	module module.Version
	// command is its package, and configuration a file: both are below the module.
	command, configuration string
	// manifests are folders with kustomizations below the module.
	manifests []string
	// bare says that the manifests are for any namespace, and make none.
	bare bool
	// second says that it takes the second spare port: another manager has the first one.
	second bool
	// namespace and account are of its ServiceAccount.
	namespace, account string
	// settings are what its configuration has besides, when it is a process that finds a
	// certificate in a folder.
	settings func(certificates string) map[string]any
}

// managerService is the Service by which the API server finds the webhooks of a manager.
const managerService = "manager"

// serveLimit bounds the wait until a manager serves its webhooks.
const serveLimit = time.Minute

// program is what a suite with the manager builds.
func (m manager) program() command { return command{m.module, m.command} }

// install returns when the manager serves its webhooks.
func (m manager) install(ctx context.Context, w *world) (*installation, error) {
	source, err := gomod.Download(ctx, sidecar.Root(), m.module.String())
	if err != nil {
		return nil, err
	}
	// Kustomize follows links before it looks for what is relative.
	dir, err := filepath.EvalSymlinks(filepath.Dir(w.Kubeconfig()))
	if err != nil {
		return nil, fmt.Errorf("find directory of the cluster: %w", err)
	}
	p := managerProcess{manager: m, world: w, source: source.Dir, dir: filepath.Join(dir, m.name)}
	step := progress.Start(os.Stderr, "Starting "+m.name+" "+m.module.Version)
	err = p.start(ctx, w.programs[m.program()])
	step.Finish(err)
	return &installation{logs: map[string]string{"manager.log": p.log()}}, err
}

// managerProcess is a manager in a cluster.
type managerProcess struct {
	manager
	*world
	// source is the folder of its module, and dir has the files of the process.
	source, dir string
}

func (p managerProcess) log() string { return filepath.Join(p.Logs(), p.name+".log") }

// port is where the manager serves its webhooks.
func (p managerProcess) port() int {
	if p.second {
		return p.SparePort() + 1
	}
	return p.SparePort()
}

// certificates is where the manager finds its certificate: by default there, below the folder
// for temporary files.
func (p managerProcess) certificates() string {
	return filepath.Join(p.dir, "k8s-webhook-server", "serving-certs")
}

func (p managerProcess) start(ctx context.Context, program string) error {
	if err := os.MkdirAll(p.certificates(), 0o700); err != nil {
		return fmt.Errorf("create directory of %s: %w", p.name, err)
	}
	made, err := newCertificate(managerService+"."+p.namespace+".svc", time.Now())
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": made.public, "tls.key": made.key} {
		if err := os.WriteFile(filepath.Join(p.certificates(), name), content, 0o600); err != nil {
			return fmt.Errorf("write certificate of %s: %w", p.name, err)
		}
	}
	if err := p.apply(ctx, made); err != nil {
		return err
	}
	if err := p.startProcess(ctx, program); err != nil {
		return err
	}
	return p.await(ctx)
}

// apply applies the manifests of the project, with its webhooks at this machine.
func (p managerProcess) apply(ctx context.Context, made certificate) error {
	service := loopbackService(map[string]any{
		"name":        managerService,
		"namespace":   p.namespace,
		"annotations": map[string]any{"certificate": base64.StdEncoding.EncodeToString(made.public)},
	}, p.port())
	k := kustomization{dir: p.dir, component: manifests("manager"), service: service}
	for _, folder := range p.manifests {
		k.given = append(k.given, filepath.Join(p.source, filepath.FromSlash(folder)))
	}
	if p.bare {
		k.namespace = p.namespace
		if _, err := p.Kubectl(ctx, "create", "namespace", p.namespace); err != nil {
			return err
		}
	}
	if err := k.write(); err != nil {
		return err
	}
	// Not all of the definitions fit into the annotation of a client-side apply.
	if _, err := p.Kubectl(ctx, "apply", "--server-side", "-k", p.dir); err != nil {
		return err
	}
	return p.AwaitDefinitions(ctx)
}

func (p managerProcess) startProcess(ctx context.Context, program string) error {
	configuration := filepath.Join(p.dir, "configuration.yaml")
	settings := managerSettings(p.port(), p.namespace)
	merge(settings, p.settings(p.certificates()))
	if err := writeConfiguration(configuration, filepath.Join(p.source, filepath.FromSlash(p.configuration)), settings); err != nil {
		return err
	}
	kubeconfig, err := sidecar.Kubeconfig(ctx, p.Cluster, p.namespace, p.account)
	if err != nil {
		return err
	}
	variables := map[string]string{"TMPDIR": p.dir}
	return p.AddComponentWithEnv(variables, p.name, program, "--kubeconfig="+kubeconfig, "--config="+configuration, "--zap-log-level=2")
}

// managerSettings are what the configurations of all managers call the same.
func managerSettings(port int, namespace string) map[string]any {
	return map[string]any{
		"health":         map[string]any{"healthProbeBindAddress": "0"},
		"metrics":        map[string]any{"bindAddress": "0"},
		"webhook":        map[string]any{"host": "127.0.0.1", "port": port},
		"leaderElection": map[string]any{"resourceNamespace": namespace},
	}
}

// await returns when the manager serves its webhooks.
func (p managerProcess) await(ctx context.Context) error {
	return awaitWebhooks(ctx, p.name, p.port(), p.log())
}

// awaitWebhooks returns when a manager serves its webhooks at a port of loopback.
func awaitWebhooks(ctx context.Context, name string, port int, logFile string) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	err := until(ctx, serveLimit, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		log, _ := os.ReadFile(logFile)
		return fmt.Errorf("wait for webhooks of %s: %w, its log:\n%s", name, err, log)
	}
	return nil
}
