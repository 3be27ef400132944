package nodeload

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/exampledriver"
	"github.com/kwok-dra/kwok-dra/test/internal/nodeload"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// quietTime is after how long without a request none comes any more.
const quietTime = 2 * time.Second

// side is a kind of nodes with their Pods, and what their kubelets and drivers have asked for in each story.
type side struct {
	*load

	kind    string
	drivers *exampledriver.Fleet
	stories map[string]counts
}

// TestAsRealDriver has nodes with processes of dra-example-driver, and then nodes on which kwok-dra plays the driver, go through
// the same stories. Both times the API server gets the same requests of drivers, and of kubelets.
func TestAsRealDriver(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	require.NoError(t, nodeload.Grant(t.Context(), h.Cluster))
	folder, err := os.MkdirTemp("", "p") //nolint:usetesting // its paths are too long for sockets
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	drivers, err := exampledriver.New(t.Context(), h.Cluster, h.Client, folder)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, drivers.Stop()) })
	h.Configure(kind, harness.Template(kind, exampledriver.Name, kind, harness.GPUs(8)))
	l := &load{H: h, process: h.Sidecar("--node-load", "--plugins-dir", folder)}
	actual := &side{load: l, kind: "real", drivers: drivers, stories: map[string]counts{}}
	played := &side{load: l, kind: kind, stories: map[string]counts{}}
	for _, s := range []*side{actual, played} {
		s.tellStories()
	}
	for story, want := range actual.stories {
		requireSame(t, story, want, played.stories[story])
	}
	require.Equal(t, counts{"driver create resourceslices": nodes, "driver get nodes": nodes}, ofDrivers(actual.stories["start"]))
	require.Equal(t, counts{"driver get resourceclaims": pods}, ofDrivers(actual.stories["run"]))
	require.Equal(t, counts{"driver get resourceclaims": 1}, ofDrivers(actual.stories["share"]))
	require.Empty(t, ofDrivers(actual.stories["end"]))
}

// requireSame compares the requests of a story: those of drivers exactly, and those of kubelets, which kwok-dra sends both
// times and which depend on what kwok does first, with the usual tolerance.
func requireSame(t *testing.T, story string, actual, played counts) {
	t.Helper()
	require.Equal(t, ofDrivers(actual), ofDrivers(played), "requests of drivers in %q", story)
	for what := range actual {
		require.Contains(t, played, what, "in %q", story)
	}
	for what, count := range played {
		require.InDelta(t, actual[what], count, max(1, tolerance*float64(actual[what])), "%s in %q", what, story)
	}
}

func ofDrivers(all counts) counts {
	drivers := maps.Clone(all)
	maps.DeleteFunc(drivers, func(what string, _ int) bool { return !strings.HasPrefix(what, "driver ") })
	return drivers
}

// tellStories has nodes start, runs Pods of all kinds on them, and deletes the Pods.
func (s *side) tellStories() {
	s.Helper()
	watches := s.countSliceWatches()
	s.tell("start", func() {
		for i := range nodes {
			node := s.node(i)
			s.CreateNode(node, s.kind)
			s.NodeReady(node, corev1.ConditionTrue)
			if s.drivers != nil {
				require.NoError(s, s.drivers.WriteKubeconfig(s.Context(), node))
				require.NoError(s, s.drivers.Start(s.Context(), node))
			}
			s.Published(node, exampledriver.Name, 8)
		}
		s.Eventually(harness.Patience, func() string {
			if open := s.countSliceWatches() - watches; open != nodes {
				return fmt.Sprintf("%d watches of slices, not one of each driver", open)
			}
			return ""
		})
	})
	s.Namespace(s.kind, exampledriver.Name)
	s.CreateClaim(s.kind, "shared", harness.ClaimSpec(s.kind))
	s.tell("run", func() { s.runPods(s.kind, "one", func(int) string { return harness.FromTemplate }) })
	s.tell("share", func() {
		// Kubelets call a driver again for Pods that come before it has answered for the first one.
		s.CreatePod(s.kind, harness.NewPod("first", s.kind, "shared"))
		s.Running(s.kind, "first")
		s.runPods(s.kind, "share", func(int) string { return "shared" })
	})
	s.tell("end", func() {
		names := []string{"first"}
		for i := range pods {
			names = append(names, fmt.Sprint("one-", i), fmt.Sprint("share-", i))
		}
		for _, name := range names {
			s.DeletePod(s.kind, name, 1)
		}
		for _, name := range names {
			s.Gone(s.kind, name)
		}
	})
}

func (s *side) node(i int) string { return fmt.Sprintf("%s-%d", s.kind, i) }

// tell tells a story, and counts its requests once no more of them come.
func (s *side) tell(story string, happen func()) {
	s.Helper()
	before := s.count()
	happen()
	last, since := counts{}, time.Now()
	s.Eventually(harness.Patience, func() string {
		now := s.count()
		maps.DeleteFunc(now, func(what string, _ int) bool { return isOfTime(what) })
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < quietTime {
			return fmt.Sprintf("the last request of %q came %s ago", story, quiet)
		}
		return ""
	})
	s.stories[story] = counts{}
	for what, count := range last {
		if sent := count - before[what]; sent > 0 {
			s.stories[story][what] = sent
		}
	}
}

// countSliceWatches asks the API server how many watches of slices are open.
func (l *load) countSliceWatches() int {
	l.Helper()
	metrics, err := l.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(l.Context())
	require.NoError(l, err)
	return int(sidecar.SumMetric(string(metrics), "apiserver_longrunning_requests", `verb="WATCH"`, `resource="resourceslices"`))
}
