package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/page"
	"github.com/kwok-dra/kwok-dra/internal/extensions/webpage/timeline"
)

// TestPicture makes the pictures of the README, page-light.png and page-dark.png: a small
// fleet with a bit of everything. All of it is to be seen without scrolling.
func TestPicture(t *testing.T) {
	t.Parallel()
	f := newMIGFleet()
	f.addNode("h100-2", 3) // one of its devices is tainted
	for n := range 3 {
		name := fmt.Sprint("tpu-v5e-", n)
		f.nodes = append(f.nodes, name)
		f.labels[name] = map[string]string{"node.kubernetes.io/instance-type": "ct5lp-hightpu-4t"}
		f.add("tpu.google.com", name, name, "tpu", 4)
		for d := range n + 1 {
			f.allocate("tpu.google.com", name, fmt.Sprint("tpu-", d), inventory.Claim{Namespace: "search", Name: fmt.Sprintf("serve-%d-%d", n, d), Prepared: true, Pods: []string{fmt.Sprint("serve-", n)}})
		}
	}
	f.wait()
	f.waiting = f.waiting[:2]
	f.reasons = map[string]string{
		"training-0": "only 173 of 232 devices of class gpu.nvidia.com on 4 nodes can be had: 13 allocated, 45 blocked, 1 tainted (gpu.nvidia.com/xid=79:NoExecute); request gpus wants 16 on one node; nearest: node h100-0 lacks 8",
	}
	ends := time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)
	report, err := json.Marshal(f.lastHour(ends))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/timeline", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(report) })
	mux.Handle("/", page.New(f.options()))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := open(t, server.URL, 1040, 704)
	b.do(chromedp.EmulateViewport(1040, 704, chromedp.EmulateScale(1.5)))
	b.wait(`document.querySelector("#waiting .reason")?.innerText.startsWith("only")`)
	b.wait(`!document.getElementById("timeline").hidden && document.body.innerText.includes("p5.48xlarge")`)
	require.Equal(t, "F 1 failing T 1 tainted 2 Pods wait", words(b.text("#trouble")))
	b.pictures("page")
	require.True(t, eval[bool](b, `["html", ".totals", "#waiting > ul", "#grid"].every((selector) => (({scrollHeight, clientHeight}) => scrollHeight <= clientHeight)(document.querySelector(selector)))`))
	b.requireNoErrors()
}

// lastHour is what a timeline tells of an hour in which claims came and went, and a device got
// its taint.
func (f *fleet) lastHour(ends time.Time) *timeline.Report {
	var past timeline.Timeline
	source := f.source()
	const minutes = 60
	for minute := range minutes {
		source.Slices = func() []inventory.Slice {
			published := slices.Clone(f.slices)
			for i := range published {
				if minute < 45 {
					published[i].Taints = nil
				}
			}
			return published
		}
		claims := min(len(f.allocations), len(f.allocations)*minute/minutes+minute%7)
		source.Allocations = func() []inventory.Allocation { return f.allocations[:claims] }
		past.Note(source.Take(), ends.Add(time.Duration(minute-minutes)*time.Minute))
	}
	return past.Report(ends)
}
