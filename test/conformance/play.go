package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/cluster/gomod"
	"github.com/kwok-dra/kwok-dra/test/conformance/autoscaled"
	"github.com/kwok-dra/kwok-dra/test/internal/karpenter"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// player has stories played.
type player struct {
	// seeds and autoscalerSeeds are how many stories a subject gets.
	seeds, autoscalerSeeds int
	// shrink is the time for a story that violates a statement.
	shrink time.Duration
	// sources is the folder of checkouts.
	sources string

	// root is that of the repository, logs is a folder to keep, and dractl and others are programs.
	root, logs, dractl, others string
}

// build builds kwok-dractl, and what starts other projects.
func (p *player) build(root string) error {
	p.root, p.logs = root, filepath.Join(root, "bin", "conformance")
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return fmt.Errorf("create directory for logs: %w", err)
	}
	programs, err := sidecar.Programs()
	if err != nil {
		return err
	}
	p.dractl, p.others = filepath.Join(programs, "kwok-dractl"), filepath.Join(programs, "test-others")
	return sidecar.Build(filepath.Join(root, "test", "others"), p.others, ".")
}

// trySubject plays stories with a subject, and keeps the results.
func (p *player) trySubject(ctx context.Context, s *store, tried *subject) error {
	fmt.Fprintf(os.Stderr, "%s, log %s\n", tried.name, p.logOf(tried))
	content, version, err := tried.play(ctx, p, tried)
	if err != nil {
		return err
	}
	return s.keepReport(tried, version, time.Now().UTC().Format(time.DateOnly), content)
}

// manifest is a file of this command.
func (p *player) manifest(name string) string {
	return filepath.Join(p.root, "test", "conformance", "manifests", name)
}

func (p *player) logOf(s *subject) string { return filepath.Join(p.logs, s.folderName()+".log") }

// schedulerArguments are those of check-scheduler. Its patience is great: a busy machine is no fault of a scheduler.
func (p *player) schedulerArguments(s *subject) []string {
	arguments := []string{"check-scheduler", "--seeds", fmt.Sprint(p.seeds), "--settle", "1m", "--timeout", "5m", "--shrink", p.shrink.String(), "-o", "json"}
	if without := s.unsupportedFeatures(); len(without) > 0 {
		arguments = append(arguments, "--without", strings.Join(without, ","))
	}
	return arguments
}

// autoscalerArguments are those of check-autoscaler.
func (p *player) autoscalerArguments() []string {
	return []string{"check-autoscaler", "--seeds", fmt.Sprint(p.autoscalerSeeds), "--quiet", "20s", "--settle", "4m", "--timeout", "15m", "--shrink", p.shrink.String(), "-o", "json"}
}

// checkKubeScheduler plays on a cluster of the scheduler's own version.
func checkKubeScheduler(ctx context.Context, p *player, s *subject) (report []byte, version string, err error) {
	programs, err := build.Ensure(ctx, build.Options{Versions: build.Versions{Kubernetes: s.kubernetes}, Output: os.Stderr})
	if err != nil {
		return nil, "", err
	}
	folder, err := os.MkdirTemp("", "kwok-dra-conformance-")
	if err != nil {
		return nil, "", fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if err := os.Symlink(programs.Path(name), filepath.Join(folder, name)); err != nil {
			return nil, "", fmt.Errorf("put together a control plane: %w", err)
		}
	}
	report, err = p.run(ctx, s, nil, append([]string{p.dractl}, append(p.schedulerArguments(s), "--control-plane", folder)...))
	return report, strings.TrimPrefix(programs.Versions.Kubernetes, "v"), err
}

// checkInSuite plays on a cluster that test/others starts for a project.
func (p *player) checkInSuite(ctx context.Context, s *subject, arguments []string) (report []byte, version string, err error) {
	source := filepath.Join(p.sources, s.checkout.folder)
	if _, err := os.Stat(source); p.sources == "" || err != nil {
		return nil, "", fmt.Errorf("find a checkout of it in -src %q, as made by: git clone %s && git -C %s checkout %s", p.sources, s.checkout.url, s.checkout.folder, s.checkout.commit)
	}
	said, err := exec.CommandContext(ctx, "git", "-C", source, "describe", "--tags", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return nil, "", fmt.Errorf("find the version of the checkout %s: %w", source, err)
	}
	command := []string{p.others, "-suite", s.checkout.suite, "-src", source, "-logs", p.logs, "-up"}
	if s.checkout.manifest != "" {
		programs, err := build.Ensure(ctx, build.Options{Versions: build.Versions{Kubernetes: s.kubernetes}, Output: os.Stderr})
		if err != nil {
			return nil, "", err
		}
		command = append(command, "sh", "-c", `"$0" apply -f "$1" >&2 && shift && exec "$@"`, programs.Path("kubectl"), p.manifest(s.checkout.manifest))
	}
	command = append(append(command, p.dractl), arguments...)
	report, err = p.run(ctx, s, []string{build.KubernetesVersionEnv + "=" + s.kubernetes}, command)
	return report, strings.TrimPrefix(strings.TrimSpace(string(said)), "v"), err
}

// checkKarpenter plays with the version of Karpenter that test/karpenter has.
func checkKarpenter(ctx context.Context, p *player, s *subject) (report []byte, version string, err error) {
	module, err := gomod.Download(ctx, filepath.Join(p.root, "test", "karpenter"), "sigs.k8s.io/karpenter")
	if err != nil {
		return nil, "", err
	}
	program, err := karpenter.Binary()
	if err != nil {
		return nil, "", err
	}
	c, err := autoscaled.StartKarpenter(ctx, autoscaled.Options{Program: program, Kubernetes: s.kubernetes, Output: os.Stderr})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	command := slices.Concat([]string{p.dractl}, p.autoscalerArguments(), autoscaled.GroupArguments())
	report, err = p.run(ctx, s, []string{"KUBECONFIG=" + c.Kubeconfig()}, command)
	_, version, _ = strings.Cut(filepath.Base(module.Dir), "@v") // as in each module cache
	return report, version, err
}

// checkClusterAutoscaler plays with the one group of nodes that test/others gives to Cluster Autoscaler.
func checkClusterAutoscaler(ctx context.Context, p *player, s *subject) (report []byte, version string, err error) {
	return p.checkInSuite(ctx, s, append(p.autoscalerArguments(), "-f", p.manifest("cluster-autoscaler.yaml")))
}

// run runs a command, and returns what it prints. It is an error if that is no report: a command that has found something
// ends with an error too.
func (p *player) run(ctx context.Context, s *subject, environment, command []string) ([]byte, error) {
	log, err := os.Create(p.logOf(s))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	fmt.Fprintln(log, strings.Join(command, " "))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 2 * time.Minute
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&printed, log), io.MultiWriter(os.Stderr, log)
	err = cmd.Run()
	if !strings.HasPrefix(printed.String(), "{") {
		return nil, fmt.Errorf("it printed no report, see %s: %w", log.Name(), err)
	}
	return []byte(printed.String()), nil
}
