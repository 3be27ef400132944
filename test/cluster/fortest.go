package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// LogsEnv names a directory for the logs of failed tests, such as one that a CI
// system keeps. Default is the directory for temporary files.
const LogsEnv = "KWOK_DRA_LOGS"

// The logs of what a cluster held at the end of a test that failed.
const (
	objectsLog = "objects"
	eventsLog  = "events"
)

// ForTest starts a cluster that is stopped at the end of the test. When the
// test has failed by then, the logs are copied to a directory that is printed
// and kept.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	home, err := temporaryHome()
	if err != nil {
		t.Fatal(err)
	}
	c, err := startCluster(t.Context(), o, home)
	t.Cleanup(func() { c.StopAfter(t) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// StopAfter stops the cluster after a test, as ForTest does: for a cluster that several
// tests have used.
func (c *Cluster) StopAfter(t testing.TB) {
	t.Helper()
	if t.Failed() {
		recordObjects(t, c)
		c.keepLogs(t)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// recordObjects writes the state of the cluster beside the logs: what a test waited for
// in vain is seldom in a log.
func recordObjects(t testing.TB, c *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for name, args := range map[string][]string{
		objectsLog: {"get", "resourceslices,resourceclaims,nodes,pods", "--all-namespaces", "--output=wide"},
		eventsLog:  {"get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"},
	} {
		out, err := c.Kubectl(ctx, args...)
		if err != nil {
			out += err.Error() + "\n"
		}
		if err := os.WriteFile(c.logPath(name), []byte(out), 0o644); err != nil {
			t.Errorf("record the objects of cluster %s: %v", c.name, err)
		}
	}
}

func (f folder) keepLogs(t testing.TB) {
	t.Helper()
	dir, err := f.CopyLogs(t.Name())
	if err != nil {
		t.Errorf("keep logs of cluster %s: %v", f.name, err)
		return
	}
	t.Logf("Logs of cluster %s are kept in %s", f.name, dir)
	t.Log(f.lastWords())
}

// lastWords are the last lines of kwok and of what a test adds, such as kwok-dra, and the
// cluster's objects and events: where only the output of a test is kept, they tell what has failed.
func (f folder) lastWords() string {
	files, _ := filepath.Glob(f.logPath("kwok*"))
	files = append(files, f.logPath(objectsLog), f.logPath(eventsLog))
	var all strings.Builder
	for _, file := range files {
		fmt.Fprintf(&all, "The last lines of %s:\n%s\n", filepath.Base(file), lastLines(file))
	}
	return all.String()
}

// CopyLogs copies the logs into a directory with a name of its own, of which that of a test is a part, in the directory
// that LogsEnv names, or else in that for temporary files. It returns the directory.
func (f folder) CopyLogs(test string) (string, error) {
	parent := os.Getenv(LogsEnv)
	if parent == "" {
		parent = os.TempDir()
	} else if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\*: `, r) {
			return '-'
		}
		return r
	}, test)
	dir, err := os.MkdirTemp(parent, "logs-"+name+"-")
	if err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	files, _ := filepath.Glob(filepath.Join(f.Logs(), "*.log"))
	for _, file := range append(files, f.pathOf("kwokctl.log"), f.pathOf("kwok.yaml")) {
		content, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // it failed before
		}
		if err != nil {
			return "", fmt.Errorf("read log: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return "", fmt.Errorf("write log: %w", err)
		}
	}
	return dir, nil
}
