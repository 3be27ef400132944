package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/page"
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

// openWaiting opens the list of the Pods that f.wait has wait.
func (b *tab) openWaiting() {
	b.t.Helper()
	b.wait(`document.querySelectorAll("#waiting li > button").length === 4`)
	b.pointAt("#waiting summary", true)
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelector("#canvas .cell")`)
	require.True(t, eval[bool](b, `document.getElementById("waiting").hidden`), "no Pod waits")
	f.wait()
	b.wait(`document.querySelector("#waiting summary").innerText === "3 Pods wait for devices"`)
	b.pointAt("#waiting summary", true)
	texts := eval[[]string](b, `[...document.querySelectorAll("#waiting li")].map((item) => [...item.children].map((part) => part.innerText).join("|"))`)
	require.Len(t, texts, 2)
	require.Regexp(t, `^2 Pods of research/Job/training\|not scheduled, since .*\|0/3 nodes are available: 3 cannot allocate all claims.\|Explain\|Copy command\|$`, texts[0])
	require.Regexp(t, `^research/slow\|on h100-0, since .*, next try .*\|the plugin has crashed\|Explain\|Copy command\|$`, texts[1])
	require.Equal(t, "Copy command: kwok-dractl why -n research training-0", eval[string](b, `document.querySelector("#waiting button + button").ariaLabel`))
	require.Equal(t, "Explain why 2 Pods of research/Job/training wait", eval[string](b, `document.querySelector("#waiting button").ariaLabel`))
	b.pointAt("#waiting button", true)
	b.wait(`document.querySelectorAll("#waiting .why li").length === 2`)
	require.Regexp(t, `^training-0: no node has the devices: claim training-0-gpu, request gpus wants 16 .* nearest: node h100-0 lacks 8$`, eval[string](b, `document.querySelector("#waiting .why li").innerText`))
	b.pictures("waiting")
	f.change(func() { f.waiting = nil })
	b.wait(`document.getElementById("waiting").hidden`)
	b.requireNoErrors()
}

// TestWaitingByKeyboard: the focus stays on what is chosen while more Pods wait, and on
// the list when what was chosen waits no longer.
func TestWaitingByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	f.wait()
	b.openWaiting()
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	const command = "kwok-dractl why -n research training-0"
	require.Equal(t, command, eval[string](b, "document.activeElement.title"))
	f.change(func() {
		since := f.waiting[0].Since
		f.waiting = append([]page.WaitingPod{{Namespace: "a", Name: "first", Reason: "no device", Since: since.Add(-time.Hour)}}, f.waiting...)
	})
	b.wait(`document.querySelectorAll("#waiting li > button").length === 6`)
	require.Equal(t, command, eval[string](b, "document.activeElement.title"))
	f.change(func() { f.waiting = f.waiting[:1] })
	b.wait(`document.querySelectorAll("#waiting li > button").length === 2`)
	require.Equal(t, "UL", eval[string](b, "document.activeElement.tagName"))
	b.requireNoErrors()
}

// TestExplainFails has a Pod that cannot be explained.
func TestExplainFails(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	f.wait()
	b.openWaiting()
	eval[bool](b, `document.querySelectorAll("#waiting li > button")[2].click() || true`)
	b.wait(`document.querySelectorAll("#waiting .why")[1].innerText.trim() === "list deviceclasses: forbidden"`)
}
