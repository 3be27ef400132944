package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	for path, kind := range map[string]string{
		"/":              "text/html; charset=utf-8",
		"/page/page.css": "text/css; charset=utf-8",
		"/page/main.js":  "text/javascript; charset=utf-8",
		"/page/icon.svg": "image/svg+xml",
	} {
		response := w.get(path)
		require.Equal(t, http.StatusOK, response.Code, path)
		require.Equal(t, kind, response.Header().Get("Content-Type"), path)
		require.Equal(t, "nosniff", response.Header().Get("X-Content-Type-Options"), path)
		require.Equal(t, policy, response.Header().Get("Content-Security-Policy"), path)
		require.Equal(t, http.StatusNotModified, w.get(path, "If-None-Match", response.Header().Get("ETag")).Code, path)
	}
	for _, path := range []string{"/page/", "/page/index.html", "/page/other.js", "/other", "/api", "/api/devices/x"} {
		require.Equal(t, http.StatusNotFound, w.get(path).Code, path)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/devices", nil))
	require.Equal(t, http.StatusMethodNotAllowed, recorder.Code)
	require.Zero(t, w.taken(), "looking at the page alone takes no inventory")
	w.feed.forget.Stop()
}

// TestPolicy: the page does with what the policy lets it, and text of the cluster
// never becomes markup.
func TestPolicy(t *testing.T) {
	t.Parallel()
	require.NotContains(t, policy, "unsafe")
	forbidden := map[string]*regexp.Regexp{
		".html": regexp.MustCompile(`<style|<script>| style=| on[a-z]+=|https?://|//[a-z]`),
		".css":  regexp.MustCompile(`@import|url\(`),
		".js":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|https?://`),
		".svg":  regexp.MustCompile(`<script| on[a-z]+=`),
	}
	require.NoError(t, fs.WalkDir(assets, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assets.ReadFile(path)
		require.NoError(t, err)
		kind := path[strings.LastIndex(path, "."):]
		require.Contains(t, mediaTypes, kind, path)
		require.Empty(t, forbidden[kind].FindString(string(content)), path)
		return nil
	}))
}

// TestReferences: all that the page names is there, relative to it, so that it
// works behind a proxy that adds a prefix.
func TestReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	defer w.feed.forget.Stop()
	named := regexp.MustCompile(`(?:src|href)="([^"]+)"|from "\./([^"]+)"`)
	seen := 0
	for _, path := range []string{"/", "/page/main.js", "/page/grid.js", "/page/keys.js", "/page/details.js", "/page/totals.js", "/page/layout.js", "/page/timeline.js"} {
		for _, match := range named.FindAllStringSubmatch(w.get(path).Body.String(), -1) {
			reference := match[1]
			if match[2] != "" {
				reference = "page/" + match[2]
			}
			require.Equal(t, http.StatusOK, w.get("/"+reference).Code, reference)
			seen++
		}
	}
	require.Greater(t, seen, 10)
}
