package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"path"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/extensions/access"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
)

//go:embed assets
var assets embed.FS

// mediaTypes are the media types of the assets, which must not depend on the machine.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policy lets the page load what comes from here, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Limits, for each client, of requests that read the API server or the whole cluster. Somebody
// who uses the page clicks less often.
const (
	costlyPerSecond = 2
	costlyAtOnce    = 20
)

// Options are what the page is made from. All are required.
type Options struct {
	Source *inventory.Source
	// Labels are the fake nodes with their labels.
	Labels iter.Seq2[string, map[string]string]
	// Slice asks the API server for a slice.
	Slice func(ctx context.Context, name string) (*resourcev1.ResourceSlice, error)
	// Waiting are the Pods with claims that wait.
	Waiting func(ctx context.Context) ([]WaitingPod, error)
	// Why says why Pods wait. It leaves out those that do not exist.
	Why func(ctx context.Context, pods []types.NamespacedName) ([]*why.Answer, error)
}

// Page serves the page at /, its parts under /page/ and its data under /api/.
type Page struct {
	http.Handler
	feed *feed
}

// New makes a page.
func New(o Options) *Page {
	feed := newFeed(o.Source)
	return &Page{feed.newHandler(&o), feed}
}

// Run records changes, even without viewers, until ctx ends. The caches of the source must be
// complete: the timeline takes what they learn later for a change.
func (p *Page) Run(ctx context.Context) { p.feed.runTimeline(ctx) }

func (f *feed) newHandler(o *Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/devices", f.serveDevices)
	mux.HandleFunc("GET /api/timeline", f.serveTimeline)
	costly := access.NewLimiter(costlyPerSecond, costlyAtOnce)
	mux.HandleFunc("GET /api/device", costly.Wrap(o.serveDevice))
	mux.HandleFunc("GET /api/labels", o.serveLabels)
	explaining := &explaining{ask: o.Why}
	mux.HandleFunc("GET /api/waiting", (&waiting{ask: o.Waiting, why: explaining}).serveWaiting)
	mux.HandleFunc("GET /api/why", costly.Wrap(explaining.serveWhy))
	files, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic(fmt.Sprintf("read what is embedded: %v", err))
	}
	for _, file := range files {
		served := "/page/" + file.Name()
		if file.Name() == "index.html" {
			served = "/{$}"
		}
		mux.Handle("GET "+served, serveAsset(file.Name()))
	}
	return withSecurityHeaders(mux)
}

// serveAsset serves one file. Browsers ask each time whether it has changed, since
// another version of kwok-dra may be behind the same address.
func serveAsset(name string) http.Handler {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(fmt.Sprintf("read what is embedded: %v", err))
	}
	sum := sha256.Sum256(content)
	tag := quoteTag(hex.EncodeToString(sum[:8]))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

// withSecurityHeaders adds the headers that keep a browser from doing more than the page
// needs.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}
