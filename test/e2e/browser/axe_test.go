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

// TestAxe has axe-core look at devices in all states, at the details of one with groups and a search
// that has a mistake, and at a page without any node.
func TestAxe(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 380} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			source := findAxe(t)
			f := newMIGFleet()
			f.addNode("h100-3", 3) // one of its devices is tainted
			f.addNICs()
			f.wait()
			b := open(t, f.serve(t), width, 900)
			b.wait(`["free", "blocked", "allocated", "prepared", "failing", "tainted"].every((state) => document.querySelector("#canvas .cell." + state))`)
			b.waits()
			b.pointAt("#waiting button", true)
			b.wait(`document.querySelectorAll("#waiting .why li").length === 3`)
			eval[bool](b, source+"; true")
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				b.requireAccessible(scheme)
				failing := `#canvas .cell.failing`
				eval[bool](b, fmt.Sprintf(`(document.querySelector(%q).scrollIntoView({ block: "center" }), true)`, failing))
				b.pointAt(failing, true)
				b.wait(`document.querySelector("#details.kept")`)
				b.set("search", "colour=red state=free")
				b.set("group", "profile")
				b.requireAccessible(scheme + " with all open")
				b.picture(fmt.Sprintf("accessible-%d-%s", width, scheme))
				b.do(chromedp.KeyEvent(kb.Escape))
				b.set("group", "")
				b.set("search", "nosuchnode")
				b.requireAccessible(scheme + " without nodes")
				b.set("search", "")
			}
			b.requireNoErrors()
		})
	}
}
