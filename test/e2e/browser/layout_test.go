package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// TestMixedFleet: many nodes of several kinds stand side by side, and still say what they are.
func TestMixedFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(200)
	for n := range 54 {
		name := fmt.Sprint("tpu-", n)
		f.nodes = append(f.nodes, name)
		f.add("tpu.google.com", name, name, "tpu", 4)
	}
	f.addMIG("mig-0")
	f.addMIG("mig-1")
	b := open(t, f.serve(t), 1440, 900)
	b.wait(`document.querySelectorAll("#canvas .cell").length > 100`)
	require.Greater(t, eval[float64](b, `Math.max(...[...document.querySelectorAll("#canvas .cell")].map((cell) => cell.getBoundingClientRect().right))`), 1440*0.7, "the width is used")
	require.GreaterOrEqual(t, eval[int](b, `Math.max(...[...document.querySelectorAll("#canvas .band")].map((band) => band.children.length))`), 3)
	b.pictures("mixed-fleet")
	b.requireNoErrors()
}

// TestTwelveDrivers: the totals of all come first, and those of drivers scroll. In a small window
// no state is off the screen.
func TestTwelveDrivers(t *testing.T) {
	t.Parallel()
	f := newFleet(4)
	for d := range 11 {
		f.add(fmt.Sprintf("driver-%02d.example.com", d), "h100-0", "h100-0", "unit", 2)
	}
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#totals tr").length === 13`)
	require.Equal(t, "all", b.text("#totals tr:first-child th"))
	require.True(t, eval[bool](b, `(({scrollHeight, clientHeight}) => scrollHeight > clientHeight)(document.querySelector(".totals"))`))
	require.Greater(t, eval[int](b, `document.getElementById("grid").clientHeight`), 300, "there is room for the devices")
	b.pictures("twelve-drivers")
	b.do(chromedp.EmulateViewport(380, 800))
	b.wait(`document.documentElement.clientWidth <= 380`)
	require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), 380)
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#totals td.count")].every((cell) => cell.getBoundingClientRect().right <= 380)`))
	b.pictures("twelve-drivers-small")
	b.requireNoErrors()
}

// TestDetailsBeside: the details never cover their device, wherever it is, and a button closes them.
func TestDetailsBeside(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int64{{1280, 720}, {380, 700}} {
		b := open(t, newFleet(20).serve(t), size[0], size[1])
		b.wait(`document.querySelectorAll("#canvas .cell").length > 50`)
		for _, node := range []int{0, 5, 9} {
			b.do(chromedp.KeyEvent(kb.Escape))
			cell := fmt.Sprintf(`[...document.querySelectorAll("#canvas .cell")].find((cell) => cell.place.id === "node/h100-%d" && cell.place.device === "gpu-1")`, node)
			eval[bool](b, `(`+cell+`.scrollIntoView({block: "nearest"}), `+cell+`.dispatchEvent(new MouseEvent("click", {bubbles: true})), true)`)
			b.wait(`document.getElementById("details").innerText.includes("GPU-h100-` + fmt.Sprint(node) + `-1")`)
			require.True(t, eval[bool](b, `(() => {
				const [card, cell] = [document.getElementById("details").getBoundingClientRect(), `+cell+`.getBoundingClientRect()];
				return card.bottom <= cell.top || card.top >= cell.bottom || card.right <= cell.left || card.left >= cell.right;
			})()`), "%v: node %d", size, node)
		}
		b.picture(fmt.Sprint("details-beside-", size[0]))
		b.do(chromedp.Click("#details .close"))
		require.True(t, eval[bool](b, `document.getElementById("details").hidden || !document.querySelector("#details.kept")`))
		b.requireNoErrors()
	}
}

// TestDidYouMean: / goes to the search, which asks what was meant, as pkg/suggest guesses it.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(4).serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .name").length === 4`)
	_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: "/", Text: "/"})
	require.NoError(t, err)
	require.Equal(t, "search", eval[string](b, "document.activeElement.id"))
	require.Empty(t, eval[string](b, "document.activeElement.value"))
	for search, want := range map[string]string{"stat=free": "state=free", "failing": "state=failing", "h100-1 state=taintd": "h100-1 state=tainted", "node=h10-1": "node=h100-1"} {
		b.set("search", search)
		const proposed = `[...document.querySelectorAll("#problem button, #empty button")].find((button) => !button.hidden && !button.parentElement.hidden)`
		require.Equal(t, "Did you mean "+want+"?", eval[string](b, proposed+`?.textContent ?? ""`), search)
		eval[bool](b, `(`+proposed+`.click(), true)`)
		require.Equal(t, want, eval[string](b, `document.getElementById("search").value`))
	}
	known := []string{"state", "driver", "node", "pool", "device", "namespace", "numaNode"}
	for _, word := range []string{"stat", "drivr", "ndoe", "pol", "name", "numa-node", "xyzzy", "dev", "colour"} {
		nearest, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf(`import("/page/suggest.js").then(({ nearest }) => nearest(%q, ["state", "driver", "node", "pool", "device", "namespace", "numaNode"]))`, word), chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		require.Equal(t, suggest.Nearest(word, known), nearest, word)
	}
	b.requireNoErrors()
}
