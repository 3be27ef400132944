package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// TestTenThousandNodes counts elements and memory, which says more than times do on a
// machine that others use as well. The times are logged.
func TestTenThousandNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(10_000)
	b := open(t, f.serve(t), 1440, 900)
	t.Logf("all devices are drawn after %v", b.since(`document.getElementById("shown").textContent === "10,000 nodes, 80,000 devices"`))
	t.Logf("first paint after %.0f ms", eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	elements := func() int { return b.count("*") }
	require.Less(t, elements(), 4000)
	require.Greater(t, b.count("#canvas .cell"), 800, "the window is full")
	b.pictures("ten-thousand-nodes")
	heap := b.heap()
	t.Logf("heap: %.0f MiB", heap)
	require.LessOrEqual(t, heap, 100.0)

	began := time.Now()
	f.change(func() {
		f.allocate(gpus, "h100-0", "gpu-5", inventory.Claim{Namespace: "default", Name: "new", Prepared: true, Pods: []string{"p"}})
	})
	b.wait(`document.querySelector("` + cellIn("gpu-5") + `").classList.contains("prepared")`)
	t.Logf("a change is drawn after %v", time.Since(began))

	eval[float64](b, `document.getElementById("grid").scrollTop = 1e9`)
	b.wait(`[...document.querySelectorAll(".name")].at(-1).textContent === "h100-9999"`)
	require.Less(t, elements(), 4000)
	for _, search := range []string{"H100-999", "model=H100 state=free", "training-77-gpu-1", ""} {
		t.Logf("a search for %q takes %.0f ms", search, b.searching(search))
	}
	b.set("search", "H100-999")
	require.Equal(t, "11 nodes, 88 of 88 devices found", b.text("#shown"))
	require.Equal(t, 11, b.count("#canvas .name"))
	require.Less(t, elements(), 700)
	b.picture("ten-thousand-nodes-searched")
	b.set("search", "")
	b.set("group", "rack")
	b.wait(`document.querySelector(".heading")?.textContent.startsWith("rack r0")`)
	require.Less(t, elements(), 4000)
	require.Contains(t, b.headings()[0], "rack r0 2,500 nodes, 20,000 devices")
	require.True(t, eval[bool](b, `(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector(".heading .title"))`), "all of it is seen")
	b.picture("ten-thousand-nodes-grouped")
	b.requireNoErrors()
}

// TestSixtyFiveThousandNodes is of the largest cluster that there is.
func TestSixtyFiveThousandNodes(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(65_000).serve(t), 1440, 900)
	t.Logf("all devices are drawn after %v", b.since(`document.getElementById("shown").textContent === "65,000 nodes, 520,000 devices"`))
	t.Logf("first paint after %.0f ms", eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	require.Less(t, b.count("*"), 4000)
	heap := b.heap()
	t.Logf("heap: %.0f MiB", heap)
	require.LessOrEqual(t, heap, 650.0)
	for _, search := range []string{"H100-999", "model=H100 state=free", ""} {
		t.Logf("a search for %q takes %.0f ms", search, b.searching(search))
	}
	b.requireNoErrors()
}

// cellIn selects the first cell of a device of this name.
func cellIn(device string) string { return fmt.Sprintf(`#canvas .cell[aria-label^='%s:']`, device) }

// since waits for an expression, and returns the time since the page was asked for.
func (b *tab) since(expression string) time.Duration {
	b.t.Helper()
	b.wait(expression)
	return time.Duration(eval[float64](b, `performance.now()`) * float64(time.Millisecond)).Round(time.Millisecond)
}

// searching is how long it takes to search and to draw what is found.
func (b *tab) searching(text string) float64 {
	b.t.Helper()
	took, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64](fmt.Sprintf(`new Promise((resolve) => {
		const began = performance.now();
		const field = document.getElementById("search");
		field.value = %q;
		field.dispatchEvent(new Event("input"));
		requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
	})`, text), chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return took
}

// heap is the memory of the page's scripts that is in use, in MiB.
func (b *tab) heap() float64 {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
	require.NoError(b.t, err)
	usage, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	require.NoError(b.t, err)
	return usage.UsedSize / (1 << 20)
}
