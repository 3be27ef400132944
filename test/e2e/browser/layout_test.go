package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
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
	for n := range 20 {
		name := fmt.Sprint("compute-node-with-a-name-", n)
		f.nodes = append(f.nodes, name)
		f.labels[name] = map[string]string{"node.kubernetes.io/instance-type": "VM.Standard.E6.Flex.With.A.Long.Name"}
		f.add("sriovnetwork.k8snetworkplumbingwg.io", name, name, "vf", 8)
	}
	b := open(t, f.serve(t), 1920, 900)
	b.wait(`document.body.innerText.includes("p5.48xlarge")`)
	for width, columns := range map[int64]int{1920: 5, 1280: 4, 800: 2, 380: 1} {
		b.do(chromedp.EmulateViewport(width, 900))
		// The width is used, and no device is off the screen.
		b.wait(fmt.Sprintf(`document.documentElement.clientWidth <= %d && document.querySelectorAll("#canvas .cell").length > 100 &&
			Math.max(...[...document.querySelectorAll("#canvas .band")].map((band) => band.children.length)) >= %d &&
			(({right}) => [...document.querySelectorAll("#canvas .cell")].every((cell) => cell.getBoundingClientRect().right <= right))(document.getElementById("canvas").getBoundingClientRect())`, width, columns))
		require.Contains(t, eval[[]string](b, `[...document.querySelectorAll("#canvas .name")].filter((name) => name.scrollWidth <= name.clientWidth).map((name) => name.textContent)`), "compute-node-with-a-name-11", "at %d", width)
		b.pictures(fmt.Sprint("mixed-fleet-", width))
	}
	b.requireNoErrors()
}

// TestFewNodes: where there is room for what a node is, it is not cut off.
func TestFewNodes(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(4).serve(t), 800, 600)
	b.wait(`document.querySelector("#canvas .info")?.textContent === "8 × NVIDIA H100 80GB HBM3, 80Gi · p5.48xlarge"`)
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas .info")].every(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)`))
	b.pictures("few-nodes")
	b.requireNoErrors()
}

// TestTwelveDrivers: the totals of all come first, and those of drivers scroll. In no window is a
// state off the screen.
func TestTwelveDrivers(t *testing.T) {
	t.Parallel()
	f := newFleet(4)
	for d := range 11 {
		f.add(fmt.Sprintf("driver-%02d.with-a-long-name.example.com", d), "h100-0", "h100-0", "unit", 2)
	}
	for d := range 1000 {
		f.allocate(gpus, "h100-0-mig", fmt.Sprint("mig-", d), inventory.Claim{Namespace: "research", Name: fmt.Sprint("slice-", d)})
	}
	f.add(gpus, "h100-0-mig", "h100-0", "mig", 1000)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#totals tr").length === 13`)
	require.Equal(t, "all", b.text("#totals tr:first-child th"))
	require.True(t, eval[bool](b, `(({scrollHeight, clientHeight}) => scrollHeight > clientHeight)(document.querySelector(".totals"))`))
	require.Greater(t, eval[int](b, `document.getElementById("grid").clientHeight`), 300, "there is room for the devices")
	for _, width := range []int64{1920, 1280, 1024, 1000, 800, 380} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.wait(fmt.Sprintf(`document.documentElement.clientWidth <= %[1]d && document.documentElement.clientWidth > %[1]d - 20`, width))
		require.LessOrEqual(t, eval[int64](b, "document.documentElement.scrollWidth"), width)
		require.True(t, eval[bool](b, `(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.querySelector(".totals"))`), "at %d all states are seen", width)
		b.pictures(fmt.Sprint("twelve-drivers-", width))
	}
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

// TestDidYouMean: / goes to the search, which asks what was meant, as internal/util/suggest guesses it.
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
