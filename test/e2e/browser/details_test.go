package browser

import (
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestDetails: all that is known of a device, what is typed next, and the way to what it
// names.
func TestDetails(t *testing.T) {
	t.Parallel()
	f := newMIGFleet()
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	b.pointAt(`.cell[aria-label^="gpu-2-mig-1g10gb-6:"]`, true)
	b.wait(`document.getElementById("details").innerText.includes("Attributes")`)
	require.Equal(t, "Node mig-0 Pool mig-0 Driver gpu.nvidia.com Part of gpu-2 Product NVIDIA H100 80GB HBM3, 10Gi "+
		"Claim research/slice allocated Failure no such driver", words(b.text("#details dl")))
	require.Contains(t, words(b.text("#details")), "Attributes productName NVIDIA H100 80GB HBM3 profile 1g10gb Capacity memory 10Gi")
	b.pictures("details")
	b.pointAt("#details dd .link", true)
	require.Equal(t, "node=mig-0", eval[string](b, `document.getElementById("search").value`))
	require.Equal(t, "1 node, 208 of 208 devices found", b.text("#shown"))

	b.pointAt(`.cell[aria-label^="gpu-1-mig-3g40gb-0:"]`, true)
	eval[bool](b, `([...document.querySelectorAll("#details .link")].find((link) => link.textContent === "server").click(), true)`)
	require.Equal(t, "pod=server namespace=research", eval[string](b, `document.getElementById("search").value`))
	require.Equal(t, "1 node, 1 of 208 devices found", b.text("#shown"))
	b.requireNoErrors()
}

// TestUUID: what is of one device alone is not kept, so it comes when it is asked for.
func TestUUID(t *testing.T) {
	t.Parallel()
	f := newFleet(3)
	b := open(t, f.serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .cell").length === 24`)
	b.pointAt(cell(2, "gpu-4"), false)
	require.NotContains(t, b.text("#details"), "GPU-h100-1-4")
	b.pointAt(cell(2, "gpu-4"), true)
	b.wait(`document.getElementById("details").innerText.includes("GPU-h100-1-4")`)
	b.requireNoErrors()
}

// TestCommands: each is copied by a button, also where the browser has no clipboard for
// pages.
func TestCommands(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(4).serve(t), 1280, 900)
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.Call(b.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
		})
		require.NoError(t, err)
	}
	b.wait(`document.querySelectorAll("#canvas .cell").length === 32`)
	b.pointAt(cell(4, "gpu-3"), true)
	b.wait(`document.getElementById("details").innerText.includes("GPU-h100-3-3")`)
	commands := func() []string {
		return eval[[]string](b, `[...document.querySelectorAll("#details code")].map((code) => code.textContent)`)
	}
	require.Equal(t, []string{
		"kubectl get resourceclaim -n research training-3-gpu-3 -o yaml",
		"kubectl describe pod -n research training-3-3",
		"kwok-dractl why -n research training-3-3",
		"kwok-dractl status node h100-3",
		"kubectl annotate node h100-3 dra.kwok.x-k8s.io/device-taints-",
	}, commands())
	b.pointAt("#details .commands li:nth-child(2) button", true)
	b.wait(`document.querySelector("#details .commands li:nth-child(2) button").textContent === "Copied"`)
	require.Equal(t, "kubectl describe pod -n research training-3-3", b.pasted())

	eval[bool](b, `(window.clipboard = navigator.clipboard, Object.defineProperty(navigator, "clipboard", {value: undefined}), true)`)
	b.pointAt("#details .commands li:nth-child(4) button", true)
	b.wait(`document.querySelector("#details .commands li:nth-child(4) button").textContent === "Copied"`)
	require.Equal(t, "kwok-dractl status node h100-3", b.pasted())

	b.pointAt(cell(1, "gpu-0"), true)
	require.Contains(t, commands(), "kubectl annotate node h100-0 dra.kwok.x-k8s.io/device-taints=gpu.nvidia.com/gpu-0:example.com/broken:NoExecute")
	b.requireNoErrors()
}

// pasted is what the clipboard has.
func (b *tab) pasted() string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`(window.clipboard ?? navigator.clipboard).readText()`, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	return text
}

// TestDetailsByKeyboard: the focus goes into the details, stays there when more is known,
// and goes back to the device.
func TestDetailsByKeyboard(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(4).serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .cell").length === 32`)
	eval[bool](b, `(() => {
		const { fetch } = window;
		const answered = new Promise((resolve) => (window.answer = resolve));
		window.fetch = async (url, ...options) => {
			if (url.startsWith("api/device?")) await answered;
			return fetch(url, ...options);
		};
		document.getElementById("grid").focus({focusVisible: true});
		return true;
	})()`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "details", eval[string](b, "document.activeElement.id"))
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab)) // past the button that closes them
	require.Equal(t, "h100-0", eval[string](b, "document.activeElement.textContent"))
	require.NotContains(t, b.text("#details"), "GPU-h100-0-0")
	eval[bool](b, "(window.answer(), true)")
	b.wait(`document.getElementById("details").innerText.includes("GPU-h100-0-0")`)
	require.Equal(t, "h100-0", eval[string](b, "document.activeElement.textContent"))
	b.do(chromedp.KeyEvent(kb.Escape))
	require.Equal(t, "grid", eval[string](b, "document.activeElement.id"))
	require.Zero(t, b.count("#details.kept:not([hidden])"))
	b.requireNoErrors()
}
