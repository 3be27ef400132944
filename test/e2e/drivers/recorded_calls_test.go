package drivers

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const recordedNode = "real"

// recorded is a step of a recording: what is done, and which calls the driver gets.
type recorded struct {
	step  string
	do    func(d *driver)
	calls []string
}

// recording is what a kubelet of Kubernetes 1.36.3 was recorded to ask of a driver. Claims are in the order in
// which the Pod names them.
var recording = []recorded{
	{"start of the driver", func(*driver) {}, []string{getInfo, notify}},
	{"Pod with one claim", func(d *driver) { d.pod("one", "one-a") }, []string{prepare + " one-a"}},
	{"Pod with two claims", func(d *driver) { d.pod("two", "two-b", "two-a") }, []string{prepare + " two-b two-a"}},
	{"shared claim, first Pod", func(d *driver) { d.pod("first", "shared") }, []string{prepare + " shared"}},
	{"shared claim, second Pod", secondPod, nil},
	{"first Pod deleted", func(d *driver) { d.s.gone("first", d.Node) }, nil},
	{"second Pod deleted", func(d *driver) { d.s.gone("second", d.Node) }, []string{unprepare + " shared"}},
	{"Pod that runs to its end", completes, []string{prepare + " ends", unprepare + " ends"}},
	{"Pod with two claims deleted", func(d *driver) { d.s.gone("two", d.Node) }, []string{unprepare + " two-b two-a"}},
	{"kubelet restarts", kubeletRestarts, []string{getInfo, notify}},
	{"driver restarts", driverRestarts, []string{getInfo, notify}},
	{"Pod while the driver is down", podWhileDown, []string{getInfo, notify, prepare + " late"}},
	{"Pod deleted while the driver is down", deletedWhileDown, []string{getInfo, notify, unprepare + " late"}},
	{"Pod deleted by force", func(d *driver) { d.s.DeletePod(d.Node, "one", 0) }, []string{unprepare + " one-a"}},
}

// asRecorded: a driver is asked what a recorded kubelet asked of it, in the same batches and order, and not once more.
func asRecorded(s *scene) {
	d := s.newDriver(recordedNode)
	told := 0
	for _, r := range recording {
		r.do(d)
		s.Eventually(harness.Patience, func() string {
			if calls := d.since(told); len(calls) < len(r.calls) {
				return fmt.Sprintf("%s: calls are %v, want %v", r.step, calls, r.calls)
			}
			return ""
		})
		require.Equal(s, append([]string{}, r.calls...), append([]string{}, d.since(told)...), r.step)
		told += len(r.calls)
	}
}

// pod creates a Pod with claims, and waits until it runs.
func (d *driver) pod(name string, claims ...string) {
	d.s.Helper()
	for _, claim := range claims {
		d.s.CreateClaim(d.Node, claim, harness.ClaimSpec(d.Node))
	}
	d.s.CreatePod(d.Node, quickPod(name, d.Node, claims...))
	d.s.Running(d.Node, name)
}

func secondPod(d *driver) {
	d.s.CreatePod(d.Node, quickPod("second", d.Node, "shared"))
	d.s.Running(d.Node, "second")
}

func completes(d *driver) {
	d.s.createCompletingPod("ends", d.Node)
	d.s.succeeds("ends", d.Node)
}

// kubeletRestarts waits for the slices that the driver makes anew.
func kubeletRestarts(d *driver) {
	before := d.published()
	d.s.restartKubelet(d.Node)
	d.s.Eventually(harness.Patience, func() string {
		if pool := d.s.Pool(d.Node, d.Name); len(pool) == 0 || pool[0].UID == before[0] {
			return "the slice is not a new one"
		}
		return ""
	})
}

func driverRestarts(d *driver) {
	before := d.published()
	d.Stop()
	d.again()
	require.Equal(d.s, before, d.published())
}

func podWhileDown(d *driver) {
	calls := len(d.since(0))
	d.Stop()
	d.s.createPod("late", d.Node)
	d.s.FailedPrepare(d.Node, "late")
	require.Empty(d.s, d.since(calls))
	d.again()
	d.s.Running(d.Node, "late")
}

func deletedWhileDown(d *driver) {
	d.Stop()
	d.s.DeletePod(d.Node, "late", 1)
	pod := d.s.PodEventually(d.Node, "late", func(pod *corev1.Pod) bool {
		return harness.PodCondition(pod, "dra.kwok.x-k8s.io/UnprepareResources") == corev1.ConditionTrue
	})
	require.True(d.s, harness.IsReady(pod), "it waits for the driver")
	d.again()
	d.s.Gone(d.Node, "late")
}
