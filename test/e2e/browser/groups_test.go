package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// headings are the headings of the groups, with what they count.
func (b *tab) headings() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("#canvas .heading")].map((heading) => [...heading.querySelectorAll(":scope > :not(:has(*)), button, .detail")].map((part) => part.textContent).join(" "))`)
}

func TestGroups(t *testing.T) {
	t.Parallel()
	f := newFleet(6)
	f.addMIG("mig-0")
	f.add(nics, "fabric", "", "port", 8)
	b := open(t, f.serve(t), 1280, 1100)
	b.wait(`document.body.innerText.includes("p5.48xlarge")`)
	require.Equal(t, []string{"Pools that nodes share", "Nodes"}, b.headings())

	b.set("group", "label")
	require.Equal(t, "label", eval[string](b, "document.activeElement.id"), "it is asked which")
	b.wait(`document.getElementById("labels").options.length === 3`)
	b.set("label", "zone")
	b.wait(`document.querySelectorAll("#canvas .heading").length === 5`)
	require.Equal(t, []string{
		"Pools that nodes share 8 devices, 0 % taken", "zone zone-0 2 nodes, 16 devices, 38 % taken", "zone zone-1 2 nodes, 16 devices, 44 % taken",
		"zone zone-2 2 nodes, 16 devices, 50 % taken", "without 1 node, 208 devices, 0 % taken",
	}, b.headings())
	require.Equal(t, "#group=label&label=zone", eval[string](b, "location.hash"))
	b.pictures("groups-label")

	b.set("group", "rack")
	b.wait(`document.querySelectorAll("#canvas .heading").length === 4`)
	require.Contains(t, b.headings()[1], "rack r0 2 nodes, 16 devices")
	require.Contains(t, b.headings()[3], "without 4 nodes, 232 devices")

	b.set("group", "profile")
	require.Equal(t, []string{
		"8 × NVIDIA H100 80GB HBM3, 80Gi 6 nodes, 48 devices, 44 % taken", "8 × NVIDIA H100 80GB HBM3, 80Gi, divided 1 node, 208 devices, 0 % taken",
		"Pools that nodes share 8 devices, 0 % taken",
	}, b.headings())
	b.requireNoErrors()
}

// TestGroupsOfDevices: NUMA nodes and PCIe roots divide the devices of each node, and parts
// go with their whole.
func TestGroupsOfDevices(t *testing.T) {
	t.Parallel()
	f := newFleet(2)
	f.addMIG("mig-0")
	f.addNICs()
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#canvas .cell").length > 200`)
	b.set("group", "numa")
	require.Equal(t, []string{
		"fabric, without NUMA node 64 devices, 2 % taken",
		"h100-0, NUMA node 0 4 devices, 0 % taken", "h100-0, NUMA node 1 4 devices, 0 % taken", "h100-0, without NUMA node 2 devices, 0 % taken",
		"h100-1, NUMA node 0 4 devices, 100 % taken", "h100-1, NUMA node 1 4 devices, 25 % taken", "h100-1, without NUMA node 2 devices, 0 % taken",
		"mig-0, NUMA node 0 104 devices, 0 % taken", "mig-0, NUMA node 1 104 devices, 0 % taken", "mig-0, without NUMA node 2 devices, 0 % taken",
	}, b.headings(), "each machine has its own NUMA node 0")
	require.Equal(t, 8, b.count("#canvas .box"), "the parts are still within their whole")
	b.pictures("groups-numa")
	b.set("group", "pcie")
	require.Equal(t, "h100-0, PCIe root pci0000:00 1 device, 0 % taken", b.headings()[1])
	b.set("search", "state=prepared")
	require.Equal(t, "h100-1, PCIe root pci0000:00 1 device, 100 % taken", b.headings()[0])
	b.requireNoErrors()
}

func TestGroupsClose(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(6).serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#canvas .cell").length === 48`)
	b.set("label", "zone")
	b.set("group", "label")
	b.wait(`document.querySelector(".heading button")?.textContent === "zone zone-0"`)
	b.pointAt(".heading button", true)
	require.Equal(t, 32, b.count("#canvas .cell"))
	require.Equal(t, "false", eval[string](b, `document.querySelector(".heading button").ariaExpanded`))
	eval[bool](b, `(document.querySelector(".heading button").focus(), true)`)
	b.do(chromedp.KeyEvent(kb.Enter))
	require.Equal(t, 48, b.count("#canvas .cell"))
	b.requireNoErrors()
}
