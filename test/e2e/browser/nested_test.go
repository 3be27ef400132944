package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// newMIGFleet is a node with 8 GPUs x 25 partitions, of which some are taken, and two
// nodes with whole GPUs.
func newMIGFleet() *fleet {
	f := newFleet(2)
	f.addMIG("mig-0")
	f.allocate(gpus, "mig-0", "gpu-0", inventory.Claim{Namespace: "research", Name: "whole", Prepared: true, Pods: []string{"trainer"}})
	f.allocate(gpus, "mig-0", "gpu-1-mig-3g40gb-0", inventory.Claim{Namespace: "research", Name: "half", Pods: []string{"server"}})
	f.allocate(gpus, "mig-0", "gpu-2-mig-1g10gb-6", inventory.Claim{Namespace: "research", Name: "slice", Failure: "no such driver"})
	return f
}

// TestParts: parts are cells within the cell of their whole, and each says its state.
func TestParts(t *testing.T) {
	t.Parallel()
	b := open(t, newMIGFleet().serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	require.Equal(t, 8*26+16, b.count("#canvas .cell"))
	require.Equal(t, 25, b.count("#canvas .box:nth-child(1) .part"))
	require.Equal(t, "3 nodes, 224 devices", b.text("#shown"))
	require.Equal(t, "8 × NVIDIA H100 80GB HBM3, 80Gi · p5.48xlarge", b.text(".band:nth-child(3) .info"), "parts are not counted")
	within := func(part string) string {
		return eval[string](b, fmt.Sprintf(`(() => {
			const part = document.querySelector("#canvas .cell[aria-label^='%s:']");
			const [inner, outer] = [part.getBoundingClientRect(), part.closest(".box").getBoundingClientRect()];
			const inside = inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
			return inside + " " + part.ariaLabel;
		})()`, part))
	}
	require.Equal(t, "true gpu-0-mig-7g80gb-0: blocked; part of gpu-0; blocked by counter memory of gpu-0", within("gpu-0-mig-7g80gb-0"))
	require.Contains(t, within("gpu-1-mig-3g40gb-0"), "true gpu-1-mig-3g40gb-0: allocated; part of gpu-1; claim research/half; Pod server")
	require.Contains(t, within("gpu-1-mig-3g40gb-4"), "true gpu-1-mig-3g40gb-4: free")
	require.Contains(t, within("gpu-2-mig-1g10gb-6"), "true gpu-2-mig-1g10gb-6: failing; part of gpu-2; claim research/slice; failure: no such driver")
	for state, letter := range map[string]string{"blocked": "B", "allocated": "A", "prepared": "P", "failing": "F", "free": ""} {
		require.Equal(t, letter, b.text("#canvas .box .cell."+state), state)
	}
	require.Equal(t, 8, eval[int](b, `new Set([...document.querySelectorAll(".box")].map((box) => box.getBoundingClientRect().top)).size === 1 ? 8 : 0`), "all GPUs of the node are in a line")
	b.pointAt(`.cell[aria-label^="gpu-1-mig-1g10gb-0:"]`, false)
	require.Contains(t, words(b.text("#details")), "B gpu-1-mig-1g10gb-0 blocked Node mig-0 Pool mig-0 Driver gpu.nvidia.com Part of gpu-1 Product NVIDIA H100 80GB HBM3, 10Gi Blocked by counter memory-slice-0 of gpu-1")
	b.pictures("parts")
	b.requireNoErrors()
}

// TestPartsByKeyboard: keys go from a whole into its parts, and on to the next.
func TestPartsByKeyboard(t *testing.T) {
	t.Parallel()
	f := newFleet(0)
	f.addMIG("mig-0")
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	active := func() string {
		return eval[string](b, `document.getElementById("active")?.ariaLabel.split(":")[0] ?? ""`)
	}
	eval[bool](b, `(document.getElementById("grid").focus({focusVisible: true}), true)`)
	press := func(key string, times int) {
		for range times {
			b.do(chromedp.KeyEvent(key))
		}
	}
	press(kb.ArrowRight, 1)
	require.Equal(t, "gpu-0", active())
	press(kb.ArrowRight, 1)
	require.Equal(t, "gpu-0-mig-1g10gb-0", active())
	press(kb.ArrowRight, 25)
	require.Equal(t, "gpu-1", active())
	press(kb.ArrowLeft, 1)
	require.Equal(t, "gpu-0-mig-7g80gb-0", active())
	press(kb.End, 1)
	require.Equal(t, "gpu-7-mig-7g80gb-0", active())
	b.requireNoErrors()
}

// TestPartsInASmallWindow: the boxes go below one another.
func TestPartsInASmallWindow(t *testing.T) {
	t.Parallel()
	b := open(t, newMIGFleet().serve(t), 380, 800)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	require.LessOrEqual(t, eval[int](b, "document.documentElement.scrollWidth"), 380)
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas .cell, #canvas .box")].every((cell) => cell.getBoundingClientRect().right <= 380)`))
	require.Equal(t, 8, eval[int](b, `document.querySelectorAll(".box .label").length`))
	b.pictures("parts-small")
	b.requireNoErrors()
}
