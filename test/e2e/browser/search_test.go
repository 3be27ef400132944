package browser

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

// found are the names of the devices that are drawn and not dimmed.
func (b *tab) found() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("#canvas .cell:not(.other)")].map((cell) => cell.place.id.replace("node/", "") + " " + cell.ariaLabel.split(":")[0])`)
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := newFleet(4)
	f.addMIG("mig-0")
	f.labels["mig-0"]["node.kubernetes.io/instance-type"] = "a3 highgpu"
	f.nodes = append(f.nodes, "cpu-0")
	f.allocate(gpus, "mig-0", "gpu-7-mig-4g40gb-0", inventory.Claim{Namespace: "web", Name: "server-claim", Failure: "no such driver", Pods: []string{"server-0"}})
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.body.innerText.includes("a3 highgpu")`)
	for search, want := range map[string]string{
		"":                                       "6 nodes, 240 devices",
		"H100-1":                                 "1 node, 8 of 8 devices found",
		"training-1-gpu-2":                       "1 node, 1 of 8 devices found",
		"SERVER-0":                               "1 node, 1 of 208 devices found",
		"hbm3":                                   "5 nodes, 240 of 240 devices found",
		"state=tainted":                          "1 node, 1 of 8 devices found",
		"state=incomplete":                       "No device is like that.",
		"state=failing":                          "1 node, 1 of 208 devices found",
		"state=blocked gpu-7":                    "No device is like that.",
		"state=blocked device=gpu-7":             "1 node, 15 of 208 devices found",
		"model=H100 state=free device=gpu-3 mig": "1 node, 26 of 208 devices found",
		"pod=server":                             "1 node, 1 of 208 devices found",
		"claim=web/server":                       "1 node, 1 of 208 devices found",
		"namespace=web":                          "1 node, 1 of 208 devices found",
		"node=cpu":                               "1 node, 0 of 0 devices found",
		"node=cpu state=free":                    "No device is like that.",
		"driver=nvidia pool=h100-0":              "1 node, 8 of 8 devices found",
		"numaNode=1 h100-0":                      "1 node, 4 of 8 devices found",
		"resource.kubernetes.io/numanode=1":      "5 nodes, 20 of 240 devices found",
		"profile=1g10gb":                         "1 node, 112 of 208 devices found",
		"memory=40Gi":                            "1 node, 24 of 208 devices found",
		`product="H100 80GB"`:                    "5 nodes, 240 of 240 devices found",
		`instance="a3 high"`:                     "1 node, 208 of 208 devices found",
		"taint=xid=79":                           "1 node, 1 of 8 devices found",
		"failure=driver":                         "1 node, 1 of 208 devices found",
		"blocked=memory-slice":                   "1 node, 13 of 208 devices found",
	} {
		b.set("search", search)
		got := b.text("#shown")
		if b.count("#empty:not([hidden])") > 0 {
			got = b.text("#empty span")
		}
		require.Equal(t, want, got, search)
		require.Empty(t, words(b.text("#problem")), search)
	}
	b.set("search", "state=prepared h100-1")
	require.Equal(t, []string{"h100-1 gpu-0", "h100-1 gpu-1", "h100-1 gpu-2", "h100-1 gpu-4"}, b.found())
	require.Equal(t, 8, b.count("#canvas .cell"), "the others of the node are dimmed")
	require.Equal(t, "#search=state%3Dprepared+h100-1", eval[string](b, "location.hash"))
	b.set("search", "mig state=free")
	b.pictures("search")
	b.requireNoErrors()
}

// TestWrongSearch: what cannot be asked for is said, and the rest is searched.
func TestWrongSearch(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(4).serve(t), 1280, 720)
	b.wait(`document.querySelectorAll("#canvas .name").length === 4`)
	b.set("search", "colour=red h100-1")
	require.Contains(t, b.text("#problem"), `"colour" is neither an attribute or capacity that is searched, nor one of state, driver, node`)
	require.Equal(t, "true", eval[string](b, `document.getElementById("search").getAttribute("aria-invalid")`))
	require.Equal(t, "1 node, 8 of 8 devices found", b.text("#shown"))
	b.picture("wrong-search")
	b.set("search", `product="H100`)
	require.Equal(t, "A quote is not closed.", words(b.text("#problem")))
	b.set("search", "state=free")
	require.Empty(t, words(b.text("#problem")))
	b.requireNoErrors()
}

// TestAddresses: also those of the page as it was.
func TestAddresses(t *testing.T) {
	t.Parallel()
	address := newFleet(10).serve(t)
	b := open(t, address+"/#driver=gpu.nvidia.com&node=h100-1&state=free", 1280, 720)
	b.wait(`document.getElementById("shown").textContent.includes("found")`)
	require.Equal(t, "node=h100-1 driver=gpu.nvidia.com state=free", eval[string](b, `document.getElementById("search").value`))
	require.Equal(t, "1 node, 3 of 8 devices found", b.text("#shown"))
	eval[string](b, `location.hash = "#search=state%3Dtainted&group=label&label=zone"`)
	b.wait(`document.querySelector(".heading button")?.textContent === "zone zone-0"`)
	require.Equal(t, "1 node, 1 of 8 devices found", b.text("#shown"))
	require.Equal(t, "zone", eval[string](b, `document.getElementById("label").value`))
	b.requireNoErrors()
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	b := open(t, newFleet(2).serve(t), 1280, 720)
	b.wait(`document.querySelector("#canvas .info")?.textContent.includes("p5.48xlarge")`)
	options := func(search string) []string {
		b.set("search", search)
		return eval[[]string](b, `[...document.getElementById("terms").options].map((option) => option.value)`)
	}
	require.Equal(t, []string{"x state=free"}, options("x state=fr"))
	require.Equal(t, []string{"failure=", "state=failing"}, options("fail"))
	require.Equal(t, []string{"node=h100-0", "node=h100-1"}, options("H100"))
	require.Equal(t, []string{"pod=training-1-0", "pod=training-1-1"}, options("training-1")[:2])
	require.Contains(t, options("num"), "numaNode=")
	require.Equal(t, []string{"instance=p5.48xlarge"}, options("instance="))
	require.Equal(t, []string{`product="NVIDIA H100 80GB HBM3"`}, options("product="))
	b.requireNoErrors()
}
