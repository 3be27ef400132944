package prepare

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// testTimeline has the sidecar tell what happened, and what was before that.
func testTimeline(h *harness.H, process *sidecar.Process) {
	told := func(path, word string) {
		h.Eventually(harness.Patience, func() string {
			return harness.Missing(read(h, process.URL+path), word)
		})
	}
	told("/api/timeline", `"from"`)
	var report struct{ Begins string }
	require.NoError(h, json.Unmarshal([]byte(read(h, process.URL+"/api/timeline")), &report))
	h.Scene("timeline", "")
	told("/api/timeline", `"kind":"published","node":"timeline"`)
	h.CreateClaim("timeline", "mine", harness.ClaimSpec("timeline"))
	h.CreatePod("timeline", harness.NewPod("pod", "timeline", "mine"))
	h.Running("timeline", "pod")
	told("/api/timeline", fmt.Sprintf(`"kind":"prepared","node":"timeline","driver":%q`, harness.Driver))
	told("/api/devices", `"id":"node/timeline"`)
	require.NotContains(h, read(h, process.URL+"/api/devices?at="+report.Begins), `"id":"node/timeline"`)
}

// read is what an address answers.
func read(h *harness.H, url string) string {
	h.Helper()
	request, err := http.NewRequestWithContext(h.Context(), http.MethodGet, url, nil)
	require.NoError(h, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(h, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(h, err)
	require.NoError(h, response.Body.Close())
	require.Equal(h, http.StatusOK, response.StatusCode, string(body))
	return string(body)
}
