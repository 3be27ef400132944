package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
)

// cell selects the cell of a device in the nth row.
func cell(row int, device string) string {
	return fmt.Sprintf(`#canvas .band:nth-child(%d) .cell[aria-label^="%s:"]`, row, device)
}

// words are a text's without the space between them.
func words(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

func TestTenNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(10)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .name").length === 10`)
	require.Equal(t, 80, b.count("#canvas .cell"))
	require.Equal(t, "gpu.nvidia.com 45 % 80 44 0 5 30 0 1 10 0", words(b.text("#totals")))
	require.Equal(t, "10 nodes, 80 devices", b.text("#shown"))
	require.Equal(t, "h100-2", b.text(".band:nth-child(3) .name"), "in the order of their numbers")
	require.Equal(t, "P", b.text(cell(2, "gpu-0")))

	b.pointAt(cell(4, "gpu-3"), false)
	require.Equal(t, "T gpu-3 tainted Node h100-3 Pool h100-3 Driver gpu.nvidia.com Product NVIDIA H100 80GB HBM3, 80Gi "+
		"Claim research/training-3-gpu-3 allocated Pod training-3-3 Taint gpu.nvidia.com/xid=79:NoExecute since",
		words(strings.Split(b.text("#details"), "since")[0]+"since"))
	b.pictures("ten-nodes")
	b.pointAt("h1", false)
	require.True(t, eval[bool](b, `document.getElementById("details").hidden`))
	b.requireNoErrors()
}

func TestSeveralDrivers(t *testing.T) {
	t.Parallel()
	f := newFleet(40)
	f.addNICs()
	f.addNode("cpu-0", 0)
	f.slices = f.slices[:len(f.slices)-1]
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#totals tr").length === 3`)
	require.Equal(t, "all", b.text("#totals tr:first-child th"))
	require.Equal(t, "41 nodes, 1 shared pool, 464 devices", b.text("#shown"))
	require.Equal(t, "Pools that nodes share", b.text(".heading"))
	require.Equal(t, "fabric", b.text(".name"))
	require.Equal(t, "no devices", b.text(".nothing"))
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas .band")].every((band) => new Set([...band.querySelectorAll(".lines")].map((lines) => lines.getBoundingClientRect().top)).size === 1 || band.classList.contains("heading"))`), "what stands side by side is in line")
	require.Equal(t, 64, b.count(".incomplete .cell"))

	b.pointAt(`.cell[aria-label^="port-9:"]`, true)
	require.Equal(t, "Pool fabric Driver dra.net.example.com Incomplete 1 of 2 slices "+
		"Claim research/uplink-0 allocated, share 4d1c-0 Pod training-0 Claim research/uplink-1 allocated, share 4d1c-1 Pod training-1 "+
		"Claim research/uplink-2 allocated, share 4d1c-2 Pod training-2", words(b.text("#details dl")))
	b.pictures("several-drivers")
	b.set("search", "driver=net")
	require.Equal(t, "40 nodes, 1 shared pool, 144 of 464 devices found", b.text("#shown"))
	const node = `[...document.querySelectorAll("#canvas .entry")].find((entry) => entry.querySelector(".name").textContent === "h100-0")`
	require.Equal(t, 8, eval[int](b, node+`.querySelectorAll(".cell.other").length`), "devices of the other driver are dimmed")
	require.Equal(t, 2, eval[int](b, node+`.querySelectorAll(".cell:not(.other)").length`))
	b.requireNoErrors()
}

// TestManyDevices: what has hundreds of devices takes the whole width, and is
// drawn in parts.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	f := newFleet(4)
	f.add(nics, "fabric", "", "port", 10_000)
	f.nodes = append(f.nodes, "many-0")
	f.add(gpus, "many-0", "many-0", "unit", 120)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.getElementById("shown").textContent === "5 nodes, 1 shared pool, 10,152 devices"`)
	require.Less(t, b.count("*"), 4000)
	b.pictures("many-devices")
	eval[float64](b, `document.getElementById("grid").scrollTop = 1e9`)
	b.wait(`document.querySelector("#canvas .band:last-child .cell[aria-label^='unit-119:']")`)
	require.Less(t, b.count("*"), 4000)
	b.picture("many-devices-end")
	b.requireNoErrors()
}

func TestSmallWindow(t *testing.T) {
	t.Parallel()
	f := newFleet(100)
	f.addNICs()
	b := open(t, f.serve(t), 390, 800)
	b.wait(`document.querySelectorAll("#canvas .cell").length > 50`)
	require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), 390, "nothing is cut off at the side")
	b.pointAt(`.cell[aria-label^="gpu-7:"]`, true)
	require.LessOrEqual(t, eval[float64](b, `document.getElementById("details").getBoundingClientRect().right`), 390.0)
	b.pictures("small-window")
	b.requireNoErrors()
}

// TestLive: what changes is drawn where it is, and the rest is left alone.
func TestLive(t *testing.T) {
	t.Parallel()
	f := newFleet(10)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .cell").length === 80`)
	b.pointAt(cell(1, "gpu-5"), true)
	require.Contains(t, b.text("#details"), "free")
	eval[bool](b, `(window.seen = document.querySelector(`+"`"+cell(1, "gpu-5")+"`"+`), true)`)

	f.change(func() {
		f.allocate(gpus, "h100-0", "gpu-5", inventory.Claim{Namespace: "default", Name: "new", Prepared: true, Pods: []string{"p"}})
	})
	b.wait(`window.seen.isConnected && window.seen.className.includes("prepared")`)
	b.wait(`document.getElementById("details").innerText.includes("GPU-h100-0-5")`)
	require.Contains(t, words(b.text("#details")), "P gpu-5 prepared × Node h100-0 Pool h100-0 Driver gpu.nvidia.com Product NVIDIA H100 80GB HBM3, 80Gi UUID GPU-h100-0-5 Claim default/new prepared Pod p")
	require.Equal(t, "gpu.nvidia.com 46 % 80 43 0 5 31 0 1 10 0", words(b.text("#totals")))

	f.change(func() { f.nodes, f.slices = f.nodes[1:], f.slices[1:] })
	b.wait(`document.getElementById("shown").textContent === "9 nodes, 72 devices"`)
	b.wait(`(({hidden, innerText}) => hidden || !innerText.includes("h100-0"))(document.getElementById("details"))`)
	f.change(func() { f.nodes, f.slices = nil, nil })
	b.wait(`document.getElementById("empty").innerText.startsWith("No fake node is there")`)
	b.requireNoErrors()
}

// TestRestart: the page finds the sidecar again, and what has changed meanwhile.
func TestRestart(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	var serving atomic.Pointer[http.Handler]
	serve := func(handler http.Handler) { serving.Store(&handler) }
	serve(page.New(f.options()))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*serving.Load()).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	b := open(t, server.URL, 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .name").length === 3`)
	serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	server.CloseClientConnections()
	b.wait(`document.getElementById("status").dataset.state === "lost"`)
	require.Equal(t, 3, b.count("#canvas .name"), "what was there last stays")
	f.change(func() { f.nodes, f.slices = f.nodes[:2], f.slices[:2] })
	serve(page.New(f.options()))
	b.wait(`document.getElementById("status").dataset.state === "live" && document.querySelectorAll("#canvas .name").length === 2`)
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(1000).serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .cell").length > 100`)
	active := func() string {
		return eval[string](b, `(() => {
			const id = document.getElementById("grid").getAttribute("aria-activedescendant");
			const cell = id && document.getElementById(id);
			return cell ? cell.closest(".entry").querySelector(".name").textContent + " " + cell.ariaLabel.split(":")[0] : "";
		})()`)
	}
	press := func(keys ...string) {
		for _, key := range keys {
			b.do(chromedp.KeyEvent(key))
		}
	}
	press(kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Tab)
	require.Equal(t, "grid", eval[string](b, "document.activeElement.id"))
	press(kb.ArrowDown)
	require.Equal(t, "h100-0 gpu-0", active())
	press(kb.ArrowRight, kb.ArrowRight)
	require.Equal(t, "h100-0 gpu-2", active())
	press(kb.ArrowLeft, kb.ArrowLeft, kb.ArrowLeft)
	require.Equal(t, "h100-0 gpu-0", active(), "there is none before")
	columns := eval[int](b, `document.querySelector(".band").children.length`)
	require.Greater(t, columns, 1)
	press(kb.ArrowDown, kb.ArrowDown)
	require.Equal(t, fmt.Sprintf("h100-%d gpu-0", 2*columns), active())
	press(kb.ArrowLeft)
	require.Equal(t, fmt.Sprintf("h100-%d gpu-7", 2*columns-1), active())
	press(kb.ArrowUp, kb.Enter)
	require.Contains(t, b.text("#details.kept"), fmt.Sprintf("h100-%d", columns-1))
	press(kb.Escape)
	require.Empty(t, b.text("#details.kept"))
	press(kb.End)
	require.Equal(t, "h100-999 gpu-7", active(), "it comes into view")
	b.picture("keyboard")
	press(kb.PageUp, kb.Home)
	require.Equal(t, "h100-0 gpu-0", active())
	b.requireNoErrors()
}

// TestTextIsText: whatever names say, they are shown and do nothing.
func TestTextIsText(t *testing.T) {
	t.Parallel()
	f := newFleet(0)
	name := `<img src=x onerror="document.title='broken'">`
	f.addNode(name, 1)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .cell").length === 8`)
	require.Equal(t, name, b.text("#canvas .name"))
	b.pointAt(cell(1, "gpu-0"), true)
	require.Contains(t, b.text("#details"), name)
	require.Zero(t, b.count("img"))
	b.requireNoErrors()
}
