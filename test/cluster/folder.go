package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A folder has all files of a cluster.
type folder struct {
	home string
	name string // of the cluster
}

// Name is the name of the cluster. Its context in the kubeconfig is
// "kwok-" and the name.
func (f folder) Name() string { return f.name }

// Kubeconfig is the path of a kubeconfig of the cluster's administrator.
func (f folder) Kubeconfig() string { return f.statePath("kubeconfig.yaml") }

// Logs is the directory with a log file for each component.
func (f folder) Logs() string { return f.statePath("logs") }

// AuditLog is the path of the API server's audit log, one JSON object per line
// and finished request. Options.Audit has to be set.
func (f folder) AuditLog() string { return filepath.Join(f.Logs(), "audit.log") }

// ContainerView is the directory for the option --container-view of kwok-dra.
// Options.ContainerView has to be set.
func (f folder) ContainerView() string { return f.pathOf("view") }

// pathOf is a path in the directory of the cluster, state one in that part of it
// which kwokctl manages.
func (f folder) pathOf(elem ...string) string {
	return filepath.Join(append([]string{f.home}, elem...)...)
}

func (f folder) statePath(elem ...string) string {
	return f.pathOf(append([]string{"clusters", f.name}, elem...)...)
}

// processEnvironment is that of every process of the cluster: ours, without what
// configures another kwok or cluster.
func (f folder) processEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "KWOK_") || strings.HasPrefix(entry, "KUBECONFIG=") || strings.HasPrefix(entry, "PATH=")
	})
	return append(env,
		"KWOK_WORKDIR="+f.home,
		"KUBECACHEDIR="+f.pathOf("kubectl-cache"),
		"PATH="+f.pathOf("bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
}

func (f folder) readPID(name string) (int, error) {
	content, err := os.ReadFile(f.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("read process number of component %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("read process number of component %s: %w", name, err)
	}
	return pid, nil
}

func (f folder) pidFile(name string) string { return f.statePath("pids", name+".pid") }

func (f folder) logPath(name string) string { return f.statePath("logs", name+".log") }
