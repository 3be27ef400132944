package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
)

// remember serves the page of a fleet with a timeline, opens it in a window and waits
// until the timeline has begun.
func remember(t *testing.T, f *fleet, width, height int64) *tab {
	t.Helper()
	served := page.New(f.options())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		served.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	b := open(t, server.URL, width, height)
	b.wait(`!document.getElementById("timeline").hidden`)
	return b
}

// happens changes the fleet, and waits until the timeline has told so.
func (b *tab) happens(f *fleet, told string, change func()) {
	b.t.Helper()
	f.change(change)
	b.wait(`document.querySelector("#timeline ul").innerText.includes("` + told + `")`)
}

// TestTimeline is the story of a device: each thing that happens to it is told, and the
// fleet can be seen as it was before and after.
func TestTimeline(t *testing.T) {
	t.Parallel()
	f := newFleet(1)
	b := remember(t, f, 1280, 720)
	claim := inventory.Claim{Namespace: "default", Name: "c"}
	has := func(claim inventory.Claim) func() {
		return func() {
			f.allocations = nil
			f.allocate(gpus, "h100-9", "gpu-0", claim)
		}
	}
	prepared, failing := claim, claim
	prepared.Prepared, failing.Failure = true, "no"
	b.happens(f, "published 8", func() { f.addNode("h100-9", 0) })
	b.happens(f, "allocated 1", has(claim))
	b.happens(f, "failed 1", has(failing))
	b.happens(f, "prepared 1", has(prepared))
	b.happens(f, "tainted 1", func() { f.slices[1].Taints = map[string][]inventory.Taint{"gpu-0": {xid}} })
	b.happens(f, "retired 8", func() { f.nodes, f.slices, f.allocations = f.nodes[:1], f.slices[:1], nil })
	require.Equal(t, "published 8 retired 8 allocated 1 prepared 1 failed 1 tainted 1 utilization", words(b.text("#timeline ul")), "nothing here is of now alone")
	b.wait(`!document.getElementById("canvas").innerText.includes("h100-9")`)
	for _, kind := range []string{"published", "allocated", "failed", "prepared", "tainted", "retired"} {
		require.Positive(t, b.count("#timeline rect."+kind), kind)
	}

	b.do(chromedp.Click("#timeline summary"))
	b.wait(`document.querySelectorAll("#timeline ol .tainted").length === 1`)
	list := words(b.text("#timeline ol"))
	require.Regexp(t, `retired h100-9 gpu-0, claim default/c .* tainted h100-9 gpu-0, claim default/c .* prepared .* failed .* allocated .* published h100-9 gpu-7`, list)
	for kind, class := range map[string]string{"tainted": "tainted", "prepared": "prepared", "failed": "failing", "allocated": "allocated", "published": "free"} {
		b.pressTime(kind)
		b.wait(`[...document.querySelectorAll("#canvas .cell[aria-label^='gpu-0:']")][1]?.classList.contains("` + class + `")`)
		require.Regexp(t, "^As it was at "+b.timeOf(kind)+", .* ago Back to now$", words(b.text("#then")))
	}
	b.pressTime("prepared")
	b.wait(`document.querySelector("#canvas .cell.prepared")`)
	b.pictures("timeline")
	require.Contains(t, words(b.text("#totals")), "gpu.nvidia.com 6 % 16 15 0 0 1 0 0 2 0")
	b.pointAt(cell(2, "gpu-0"), true)
	require.Contains(t, words(b.text("#details")), "Claim default/c prepared")

	f.change(func() { f.addNode("h100-3", 0) })
	b.wait(`document.querySelector("#timeline ul").innerText.includes("published 16")`)
	require.NotContains(t, b.text("#canvas"), "h100-3", "what is new is not drawn into what was")
	b.do(chromedp.Click("#then button"))
	b.wait(`document.getElementById("canvas").innerText.includes("h100-3") && !document.getElementById("canvas").innerText.includes("h100-9")`)
	require.True(t, eval[bool](b, `document.getElementById("then").hidden`))
	b.requireNoErrors()
}

// TestTimelineTicks: the times below the bars stand apart, however wide the window is.
func TestTimelineTicks(t *testing.T) {
	t.Parallel()
	b := remember(t, newFleet(3), 1920, 720)
	for _, width := range []int64{1920, 1280, 800, 380} {
		b.do(chromedp.EmulateViewport(width, 720))
		b.wait(fmt.Sprintf(`document.documentElement.clientWidth <= %d && (() => {
			const ticks = [...document.querySelectorAll("#timeline .axis span")].map((tick) => tick.getBoundingClientRect());
			return ticks.length > 1 && ticks.at(-1).right <= innerWidth && ticks.slice(1).every((tick, i) => tick.left > ticks[i].right);
		})()`, width))
	}
	b.requireNoErrors()
}

// timeOf is the time of the first change of a kind in the list.
func (b *tab) timeOf(kind string) string {
	b.t.Helper()
	return b.text("#timeline li:has(.kind." + kind + ") button")
}

// pressTime goes to that time.
func (b *tab) pressTime(kind string) {
	b.t.Helper()
	eval[bool](b, `document.querySelector("#timeline li:has(.kind.`+kind+`) button").click() ?? true`)
}

// TestTimelineByKeyboard: the arrow keys go back and forth, and the time is said.
func TestTimelineByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := remember(t, f, 390, 800)
	b.happens(f, "published 8", func() { f.addNode("h100-9", 8) })
	b.wait(`document.querySelectorAll("#canvas .cell").length === 32`)
	require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), 390, "nothing is cut off at the side")
	said := func() string { return eval[string](b, `document.activeElement.getAttribute("aria-valuetext")`) }
	b.do(chromedp.Focus("#timeline input"))
	require.Equal(t, "now", said())
	b.do(chromedp.KeyEvent(kb.Home))
	b.wait(`document.querySelectorAll("#canvas .cell").length === 24`)
	require.Regexp(t, `^\d+:\d+:\d+`, said())
	require.Contains(t, b.text("#then"), said())
	b.pictures("timeline-small-window")
	b.do(chromedp.KeyEvent(kb.End))
	b.wait(`document.querySelectorAll("#canvas .cell").length === 32`)
	require.Equal(t, "now", said())
	b.requireNoErrors()
}
