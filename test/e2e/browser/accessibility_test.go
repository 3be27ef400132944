package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestRoles: a screen reader is told what each thing is, and where in the whole.
func TestRoles(t *testing.T) {
	t.Parallel()
	f := newMIGFleet()
	f.addNICs()
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas [role=gridcell], #canvas [role=rowheader]")].every((cell) => cell.closest("[role=row]"))`))
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas .cell")].every((cell) => cell.role === "gridcell" && cell.ariaLabel)`))
	require.Equal(t, "grid", eval[string](b, `document.getElementById("canvas").parentElement.role`))
	require.Equal(t, "mig-0, 8 × NVIDIA H100 80GB HBM3, 80Gi · p5.48xlarge", eval[string](b, `[...document.querySelectorAll("[role=rowheader]")].at(-1).ariaLabel`))
	rows := eval[[]int](b, `[...document.querySelectorAll("[aria-rowindex]")].map((row) => Number(row.getAttribute("aria-rowindex"))).sort((a, b) => a - b)`)
	require.Equal(t, 1, rows[0])
	require.Equal(t, len(rows), rows[len(rows)-1])
	require.Equal(t, len(rows), eval[int](b, `Number(document.getElementById("grid").getAttribute("aria-rowcount"))`))
	b.requireNoErrors()
}

// TestAxe has axe-core judge the page, if $AXE is the path of its axe.min.js.
func TestAxe(t *testing.T) {
	t.Parallel()
	path := os.Getenv("AXE")
	if path == "" {
		t.Skip("AXE is not the path of axe.min.js, which the package axe-core of npm has")
	}
	axe, err := os.ReadFile(path)
	require.NoError(t, err)
	f := newMIGFleet()
	f.addNICs()
	for name, width := range map[string]int64{"wide": 1280, "small": 380} {
		b := open(t, f.serve(t), width, 900)
		b.wait(`document.querySelectorAll("#canvas .cell").length > 200`)
		eval[bool](b, string(axe)+"; true")
		violations := func() []string {
			found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run().then(({violations}) => violations.flatMap(({id, nodes}) =>
				nodes.map((node) => id + ": " + node.html.slice(0, 200) + " " + node.failureSummary)))`, chromedp.EvalAwaitPromise))
			require.NoError(t, err)
			return found
		}
		for _, scheme := range []string{"light", "dark"} {
			b.scheme(scheme)
			require.Empty(t, strings.Join(violations(), "\n"), "%s, %s", name, scheme)
			b.pointAt(`.cell[aria-label^="gpu-2-mig-1g10gb-6:"]`, true)
			b.set("search", "colour=red state=free")
			b.set("group", "profile")
			require.Empty(t, strings.Join(violations(), "\n"), "%s, %s, with all open", name, scheme)
			b.set("search", "")
			b.set("group", "")
		}
	}
}
