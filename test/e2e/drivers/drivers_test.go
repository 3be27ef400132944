// Package drivers proves that real DRA drivers run on fake nodes: they register through sockets,
// publish their slices, and are asked to prepare and unprepare the claims of Pods.
package drivers

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// scene is a cluster whose kwok-dra takes real drivers.
type scene struct {
	*harness.H
	plugins string
	// kwokDRA is the process, if there is only one.
	kwokDRA *sidecar.Process
}

// on is the scene for a subtest.
func (s *scene) on(t *testing.T) *scene { return &scene{s.On(t), s.plugins, s.kwokDRA} }

// newScene starts a cluster with kwok-dra.
func newScene(t *testing.T, options cluster.Options) *scene {
	t.Helper()
	h := harness.New(t, options)
	plugins, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(plugins)) })
	return &scene{h, plugins, nil}
}

// newNode creates a node with a namespace, class and claim template of that name for a driver.
func (s *scene) newNode(name string) {
	s.Helper()
	s.newNodeOf(name, driverOf(name))
}

func (s *scene) newNodeOf(name, driver string) {
	s.Helper()
	s.CreateNode(name, name)
	s.Namespace(name, driver)
	s.Eventually(harness.Patience, func() string {
		if _, err := os.Stat(filepath.Join(s.plugins, name, "plugins_registry")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// driverOf is the name of the driver of a node.
func driverOf(node string) string { return node + ".example.com" }

// retry is the time after which kwok-dra tries again what has failed.
const retry = 2 * time.Second

// newGeneralScene is a scene with general Stages, in which kwok-dra runs.
func newGeneralScene(t *testing.T, options cluster.Options) *scene {
	t.Helper()
	options.Config = harness.GeneralStages(t)
	s := newScene(t, options)
	s.ConfigureGeneral(retry)
	s.startKwokDRA()
	return s
}

func (s *scene) startKwokDRA() {
	s.Helper()
	s.kwokDRA = s.Sidecar("--plugins-dir", s.plugins, "--pod-resources")
}

// TestDrivers: a driver is served as by a kubelet, and beside others.
func TestDrivers(t *testing.T) {
	t.Parallel()
	together(newGeneralScene(t, cluster.Options{}), map[string]func(*scene){
		"AsRecorded":    asRecorded,
		"LongNames":     longNames,
		"RollingUpdate": rollingUpdate,
		"SideBySide":    sideBySide,
	})
}
