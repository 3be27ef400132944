// Package nodeload proves by the audit log that fake nodes with --node-load ask of the API server what a recorded kubelet and
// driver did.
package nodeload

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/nodeload"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	nodes = 5
	// pods of each kind.
	pods = 10
	// kind is the label of the nodes, the namespace and its classes.
	kind = "load"
	// tolerance is by how much the number of requests may differ from the recorded one.
	tolerance = 0.05
)

// counts are numbers of requests by component, verb and resource.
type counts map[string]int

// readRecord returns the recorded requests by story.
func readRecord(t *testing.T) map[string]counts {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "kubelet-1.36.3.txt"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	stories, story := map[string]counts{}, ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		number, what, isFound := strings.Cut(lines.Text(), " ")
		switch {
		case !isFound || number == "#":
		case number == "story":
			story = what
			stories[story] = counts{}
		default:
			stories[story][what], err = strconv.Atoi(number)
			require.NoError(t, err)
		}
	}
	return stories
}

// load is a cluster with fake nodes under load.
type load struct {
	*harness.H
	process *sidecar.Process
	record  map[string]counts
	// before are the requests before the story that is told.
	before counts
}

// count counts all requests of kubelets and drivers so far but those that are sent again.
func (l *load) count() counts {
	l.Helper()
	all := counts{}
	for _, event := range l.Audited(func(event *cluster.AuditEvent) bool {
		return nodeload.RequestOf(event) != "" && !nodeload.IsSentAgain(event)
	}) {
		all[nodeload.RequestOf(&event)]++
	}
	return all
}

// told compares the requests since the last story with the recorded ones of a story that was told some times. Watches are in
// the audit log when they end, so they are counted by the sidecar.
func (l *load) told(story string, times int, differ counts) {
	l.Helper()
	want := maps.Clone(l.record[story])
	maps.DeleteFunc(want, func(what string, _ int) bool { return strings.Contains(what, " watch ") })
	maps.Copy(want, differ)
	l.Eventually(harness.Patience, func() string {
		missing := []string{}
		now := l.count()
		for what, each := range want {
			if sent := now[what] - l.before[what]; float64(sent) < float64(each*times)*(1-tolerance) {
				missing = append(missing, fmt.Sprintf("%s: %d of %d", what, sent, each*times))
			}
		}
		slices.Sort(missing)
		return strings.Join(missing, ", ")
	})
	harness.Wait(l.Context(), time.Second) // for what should not come
	now := l.count()
	for what := range now {
		if sent := now[what] - l.before[what]; !isOfTime(what) {
			require.InDeltaf(l, want[what]*times, sent, float64(want[what]*times)*tolerance, "%s of %q", what, story)
		}
	}
	l.before = now
}

// isOfTime reports whether a request is sent now and then, or when a watch ends.
func isOfTime(what string) bool {
	return strings.Contains(what, " watch ") || strings.Contains(what, " list ") || strings.Contains(what, "leases") || strings.HasSuffix(what, "patch nodes/status")
}

// runPods creates the Pods of a story, with a token for each, and waits until they run.
func (l *load) runPods(namespace, prefix string, claimOf func(i int) string) {
	l.Helper()
	for i := range pods {
		pod := harness.NewPod(fmt.Sprintf("%s-%d", prefix, i), namespace, claimOf(i))
		pod.Spec.AutomountServiceAccountToken = nil
		pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		l.CreatePod(namespace, pod)
	}
	for i := range pods {
		l.Running(namespace, fmt.Sprintf("%s-%d", prefix, i))
	}
}

// requireWatches counts open watches by the sidecar's metric.
func (l *load) requireWatches(want map[string]int) {
	l.Helper()
	l.Eventually(harness.Patience, func() string {
		for labels, count := range want {
			if open := l.Metric(l.process, "kwok_dra_node_load_watches", strings.Split(labels, " ")...); int(open) != count {
				return fmt.Sprintf("%v watches of %s, not %d", open, labels, count)
			}
		}
		return ""
	})
}

// TestAsRecorded tells the stories of the record on fake nodes. The fast Stages write less than a kubelet.
func TestAsRecorded(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{Config: harness.FastStages(t), Audit: true})
	require.NoError(t, nodeload.Grant(t.Context(), h.Cluster))
	h.Configure(kind, harness.Template(kind, harness.Driver, kind, harness.GPUs(8)))
	h.Namespace(kind, harness.Driver)
	for i := range nodes {
		h.CreateNode(fmt.Sprint("node-", i), kind)
		h.NodeReady(fmt.Sprint("node-", i), corev1.ConditionTrue)
	}
	l := &load{H: h, record: readRecord(t)}
	l.before = l.count()
	l.process = h.Sidecar("--node-load")
	// A fake node exists already, and has no object for CSI drivers yet. The recorded kubelet had it from its first start.
	l.told("start", nodes, counts{"kubelet create nodes": 0, "kubelet create csinodes": 1})
	l.requireWatches(map[string]int{
		`component="driver"`: nodes, `component="kubelet"`: 5 * nodes, `resource="pods"`: nodes, `resource="nodes"`: nodes, `resource="services"`: nodes,
	})

	l.runPods(kind, "one", func(int) string { return harness.FromTemplate })
	l.told("run", pods, nil)
	l.CreateClaim(kind, "shared", harness.ClaimSpec(kind))
	l.runPods(kind, "share", func(int) string { return "shared" })
	l.before["driver get resourceclaims"]++ // for the first of the Pods
	l.told("share", pods, nil)

	for i := range pods {
		l.DeletePod(kind, fmt.Sprint("one-", i), 1)
	}
	for i := range pods {
		l.Gone(kind, fmt.Sprint("one-", i))
	}
	// Kwok deletes the Pod, at times twice, and before its kubelet could write.
	l.told("end", pods, counts{"kubelet delete pods": 0, "kubelet get pods": 1, "kubelet patch pods/status": 0})
	l.requireIdentities()
	l.requireFlows()
}

// requireIdentities looks at who sent what.
func (l *load) requireIdentities() {
	l.Helper()
	kubelets, drivers, claims := map[string]int{}, map[string]int{}, map[string]int{}
	for _, event := range l.Audited(func(event *cluster.AuditEvent) bool {
		return event.ImpersonatedUser.Username != "" && !nodeload.IsSentAgain(event)
	}) {
		user := event.ImpersonatedUser
		switch node, isKubelet := strings.CutPrefix(user.Username, nodeload.KubeletUser); {
		case isKubelet:
			kubelets[node]++
			require.Equal(l, []string{"system:nodes", "system:authenticated"}, user.Groups)
			require.Regexp(l, `^kubelet/v1\.\d+\.\d+ \(linux/amd64\) kubernetes/`, event.UserAgent)
		default:
			require.Equal(l, nodeload.DriverUser+harness.Driver, user.Username)
			nodes := user.Extra["authentication.kubernetes.io/node-name"]
			require.Len(l, nodes, 1)
			drivers[nodes[0]]++
			require.True(l, strings.HasPrefix(event.UserAgent, harness.Driver+"/"))
		}
		if event.ObjectRef.Resource == "resourceclaims" {
			claims[event.ObjectRef.Name]++
		}
	}
	require.Len(l, kubelets, nodes)
	require.Len(l, drivers, nodes)
	require.Equal(l, pods+1, claims["shared"], "once for each Pod, and once for the driver")
	delete(claims, "shared")
	require.Len(l, claims, pods)
	for claim, reads := range claims {
		require.Equal(l, 2, reads, "the kubelet and the driver read claim %s", claim)
	}
}

// requireFlows asks the API server to which flows it has assigned the requests: those that it assigns real nodes to.
func (l *load) requireFlows() {
	l.Helper()
	metrics, err := l.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(l.Context())
	require.NoError(l, err)
	dispatched := func(schema, level string) (total float64) {
		for line := range strings.Lines(string(metrics)) {
			if strings.HasPrefix(line, "apiserver_flowcontrol_dispatched_requests_total{") && strings.Contains(line, fmt.Sprintf(`flow_schema="%s"`, schema)) {
				require.Contains(l, line, fmt.Sprintf(`priority_level="%s"`, level))
				value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
				require.NoError(l, err)
				total += value
			}
		}
		return total
	}
	sent := func(component string, labels ...string) float64 {
		return l.Metric(l.process, "kwok_dra_node_load_requests_total", append(labels, fmt.Sprintf(`component="%s"`, component))...)
	}
	heartbeats := sent("kubelet", `resource="leases"`) + sent("kubelet", `resource="nodes"`) + sent("kubelet", `resource="nodes/status"`)
	require.InEpsilon(l, heartbeats, dispatched("system-node-high", "node-high"), tolerance)
	require.InEpsilon(l, sent("kubelet")-heartbeats, dispatched("system-nodes", "system"), tolerance)
	require.GreaterOrEqual(l, dispatched("service-accounts", "workload-low"), sent("driver"))
}
