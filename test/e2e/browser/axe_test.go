package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kwok-dra/kwok-dra/pkg/inventory"
)

// axeVersion is the version of axe-core, which says what people who see or move
// otherwise cannot use.
const axeVersion = "4.14.1"

// axe is the text of axe-core, as npm has it.
var axe = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "axe-core")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	for _, command := range [][]string{
		{"npm", "pack", "--silent", "axe-core@" + axeVersion},
		{"tar", "-xzf", "axe-core-" + axeVersion + ".tgz", "package/axe.min.js"},
	} {
		run := exec.Command(command[0], command[1:]...)
		run.Dir = directory
		if out, err := run.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", run, err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(directory, "package", "axe.min.js"))
	return string(text), err
})

// findAxe skips the test where there is no npm to get axe-core with.
func findAxe(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm in PATH, which gets axe-core: install the package npm to run this test")
	}
	text, err := axe()
	require.NoError(t, err)
	return text
}

// requireAccessible wants axe-core to find nothing to complain of in what is to be seen.
func (b *tab) requireAccessible(what string) {
	b.t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, { resultTypes: ["violations"] }).then((results) =>
		JSON.stringify(results.violations.map(({ id, help, nodes }) =>
			({ id, help, nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => ({ html, failureSummary })) }))))`, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, what)
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	require.NoError(b.t, json.Unmarshal([]byte(found), &violations))
	for _, violation := range violations {
		for _, node := range violation.Nodes {
			b.t.Errorf("%s: %s: %s\n%s\n%s", what, violation.ID, violation.Help, node.HTML, node.FailureSummary)
		}
	}
}

// TestAccessible has axe-core look at devices in all states, at the details of one, and at a page
// without any.
func TestAccessible(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 380} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			source := findAxe(t)
			f := newFleet(40)
			f.addNICs()
			f.addDivided()
			b := open(t, f.serve(t), width, 800)
			b.wait(`["free", "blocked", "allocated", "prepared", "failing", "tainted"].every((state) => document.querySelector("#canvas .cell." + state))`)
			eval[bool](b, source+"; true")
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				b.set("node", "")
				b.requireAccessible(scheme)
				b.pointAt("#canvas .cell", true)
				b.wait(`document.querySelector("#details.kept")`)
				b.requireAccessible(scheme + " with details")
				b.picture(fmt.Sprintf("accessible-%d-%s", width, scheme))
				b.do(chromedp.KeyEvent(kb.Escape))
				b.set("node", "no such node")
				b.requireAccessible(scheme + " without nodes")
			}
			b.requireNoErrors()
		})
	}
}

// addDivided adds a node whose GPU is divided, so that one half blocks the whole, and
// the other half cannot be prepared.
func (f *fleet) addDivided() {
	counters := func(amount string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(amount)}}
	}
	spec := resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{{Name: "gpu", Counters: counters("80Gi")}}}
	for name, amount := range map[string]string{"gpu-0": "80Gi", "gpu-0-half-0": "40Gi", "gpu-0-half-1": "40Gi"} {
		spec.Devices = append(spec.Devices, resourcev1.Device{
			Name: name, ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu", Counters: counters(amount)}},
		})
	}
	slice := newSlice(gpus, "a-divided", "", 0)
	slice.Node, slice.Devices, slice.Sharing = slice.Pool, inventory.NamesOf(spec.Devices), inventory.SharingOf(&spec)
	f.nodes, f.slices = append(f.nodes, slice.Node), append(f.slices, slice)
	f.allocate(gpus, slice.Pool, "gpu-0-half-0", inventory.Claim{Namespace: "research", Name: "half", Prepared: true, Pods: []string{"half"}})
	f.allocate(gpus, slice.Pool, "gpu-0-half-1", inventory.Claim{Namespace: "research", Name: "fails", Failure: "the plugin has crashed", Pods: []string{"fails"}})
}
