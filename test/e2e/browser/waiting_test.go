package browser

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
)

// wait has Pods wait: two for a node, and one for its devices.
func (f *fleet) wait() {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const reason = "0/3 nodes are available: 3 cannot allocate all claims."
	f.change(func() {
		f.waiting = []page.WaitingPod{
			{Namespace: "research", Name: "training-0", Owner: "Job/training", Reason: reason, Since: since},
			{Namespace: "research", Name: "training-1", Owner: "Job/training", Reason: reason, Since: since},
			{Namespace: "research", Name: "slow", Node: "h100-0", Reason: "the plugin has crashed", Since: since, Retry: since.Add(time.Minute)},
		}
	})
}

// waits waits until the page says why the Pods that f.wait has wait do.
func (b *tab) waits() {
	b.t.Helper()
	b.wait(`document.querySelectorAll("#waiting .reason").length === 2 && document.querySelector("#waiting .reason").innerText.startsWith("no node has the devices")`)
}

// TestWaiting: why Pods wait is seen at once, in the words of kwok-dractl why.
func TestWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelector("#canvas .cell")`)
	require.True(t, eval[bool](b, `document.getElementById("waiting").hidden`), "no Pod waits")
	f.wait()
	b.waits()
	require.Equal(t, "3 Pods wait", words(b.text("#trouble button[value=waiting]")))
	texts := eval[[]string](b, `[...document.querySelectorAll("#waiting > ul > li")].map((item) => [...item.children].map((part) => part.innerText).join("|"))`)
	require.Len(t, texts, 2)
	require.Regexp(t, `^2 Pods of research/Job/training\|not scheduled, since .*\|More\|Copy command\|no node has the devices: claim training-0-gpu, .* nearest: node h100-0 lacks 8\|$`, texts[0])
	require.Regexp(t, `^research/slow\|on h100-0, since .*, next try .*\|More\|Copy command\|no node has the devices`, texts[1])
	require.NotContains(t, b.text("#waiting"), "0/3 nodes are available", "the scheduler's words are not the first")
	require.Equal(t, "Copy command: kwok-dractl why -n research training-0", eval[string](b, `document.querySelector("#waiting button + button").ariaLabel`))
	require.Equal(t, "More: why 2 Pods of research/Job/training wait", eval[string](b, `document.querySelector("#waiting button").ariaLabel`))
	b.pictures("waiting")
	b.pointAt("#waiting button", true)
	require.Equal(t, []string{
		"This is of Pod training-0.",
		"3 nodes (h100-0, h100-1, h100-2): claim training-0-gpu, request gpus wants 16: devices 8, class gpu.nvidia.com 8",
		"The scheduler says: 0/3 nodes are available: 3 cannot allocate all claims.",
	}, eval[[]string](b, `[...document.querySelectorAll("#waiting .why li")].map((line) => line.innerText)`))
	b.pictures("waiting-more")
	b.pointAt("#waiting button", true)
	require.Zero(t, b.count("#waiting .why li"))
	b.do(chromedp.Click("#trouble button[value=waiting]"))
	require.Equal(t, "Pods that wait", eval[string](b, "document.activeElement.ariaLabel"))
	f.change(func() { f.waiting = nil })
	b.wait(`document.getElementById("waiting").hidden`)
	require.Zero(t, b.count("#trouble button[value=waiting]"))
	b.requireNoErrors()
}

// TestWaitingByKeyboard: the focus stays on what is chosen while more Pods wait, and on
// the list when what was chosen waits no longer.
func TestWaitingByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	f.wait()
	b.waits()
	b.do(chromedp.Focus("#waiting button"), chromedp.KeyEvent(kb.Tab))
	const command = "kwok-dractl why -n research training-0"
	require.Equal(t, command, eval[string](b, "document.activeElement.title"))
	f.change(func() {
		since := f.waiting[0].Since
		f.waiting = append([]page.WaitingPod{{Namespace: "a", Name: "first", Reason: "no device", Since: since.Add(-time.Hour)}}, f.waiting...)
	})
	b.wait(`document.querySelectorAll("#waiting > ul > li").length === 3`)
	require.Equal(t, command, eval[string](b, "document.activeElement.title"))
	f.change(func() { f.waiting = f.waiting[:1] })
	b.wait(`document.querySelectorAll("#waiting > ul > li").length === 1`)
	require.Equal(t, "UL", eval[string](b, "document.activeElement.tagName"))
	b.requireNoErrors()
}

// TestWhyIsNotKnown: it is said once that it cannot be said, and the scheduler's words are
// marked as such. Pods without an owner that ask for the same are one.
func TestWhyIsNotKnown(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	f.unexplained = errors.New("list deviceclasses: forbidden")
	for i := range 300 {
		f.waiting = append(f.waiting, page.WaitingPod{Namespace: "research", Name: fmt.Sprint("bare-", i), Asks: "template gpu", Reason: fmt.Sprintf("0/%d nodes are available", i)})
	}
	b := open(t, f.serve(t), 380, 800)
	b.wait(`document.querySelector("#waiting > p").innerText.startsWith("Why is not known: list deviceclasses: forbidden.")`)
	require.Equal(t, "300 Pods wait", words(b.text("#trouble button[value=waiting]")))
	require.Equal(t, 1, b.count("#waiting > ul > li"))
	require.Equal(t, "300 Pods of research: bare-0, bare-1, bare-2, …", b.text("#waiting .who"))
	require.Equal(t, "The scheduler says: 0/0 nodes are available", b.text("#waiting .reason"))
	b.pictures("waiting-unexplained")
	b.pointAt("#waiting button", true)
	b.wait(`document.querySelector("#waiting .why li")?.innerText.trim() === "list deviceclasses: forbidden"`)
}

// TestTrouble: trouble is seen first, and each number leads to what it counts.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 380} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			f := newMIGFleet()
			f.addNode("h100-3", 3) // one of its devices is tainted
			f.addNICs()
			f.wait()
			f.allocations = append(f.allocations, inventory.Allocation{
				Driver: gpus, Pool: "h100-0", Device: "gpu-99", Node: "h100-0", Covered: true, Claim: inventory.Claim{Namespace: "research", Name: "left"},
			})
			b := open(t, f.serve(t), width, 800)
			b.waits()
			require.Equal(t, "F 1 failing T 1 tainted 3 Pods wait 1 pool incomplete 1 gone", words(b.text("#trouble")))
			require.True(t, eval[bool](b, `document.getElementById("trouble").getBoundingClientRect().bottom < document.querySelector(".totals").getBoundingClientRect().top`))
			require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), width)
			b.pictures(fmt.Sprint("trouble-", width))
			b.do(chromedp.Click("#trouble button[value=failing]"))
			require.Equal(t, "state=failing", eval[string](b, `document.getElementById("search").value`))
			require.Equal(t, "1 node, 1 of 210 devices found", b.text("#shown"))
			require.True(t, eval[bool](b, `document.querySelector("#canvas .cell.failing").getBoundingClientRect().bottom <= innerHeight`), "what is found is seen")
			b.do(chromedp.Click(`#totals button[value="state=tainted driver=gpu.nvidia.com"]`))
			require.Equal(t, "1 node, 1 of 10 devices found", b.text("#shown"))
			b.do(chromedp.Click("#trouble button[value=incomplete]"))
			require.Equal(t, "0 nodes, 1 shared pool, 64 of 64 devices found", b.text("#shown"))
			b.do(chromedp.Click("#trouble button[value=gone]"))
			require.Equal(t, "Devices that are gone", eval[string](b, "document.activeElement.ariaLabel"))
			require.Contains(t, b.text("#gone details[open]"), "gpu.nvidia.com/h100-0/gpu-99")
			f.change(func() { f.notReady = map[string]bool{"h100-1": true} })
			b.wait(`document.querySelector("#trouble button[value=notready]") !== null`)
			require.Equal(t, "1 node not Ready", words(b.text("#trouble button[value=notready]")))
			b.do(chromedp.Click("#trouble button[value=notready]"))
			require.Equal(t, "1 node, 10 of 10 devices found", b.text("#shown"))
			require.Zero(t, b.count("#canvas .cell.free:not(.other)"))
			f.change(func() { f.nodes, f.slices, f.allocations, f.waiting = f.nodes[:1], f.slices[:1], nil, nil })
			b.wait(`document.getElementById("trouble").innerText.trim() === "Nothing is failing, tainted or waiting."`)
			b.requireNoErrors()
		})
	}
}
