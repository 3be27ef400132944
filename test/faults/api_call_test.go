package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// call is a request as the proxy understands it.
type call struct {
	method, path string
	// selectors tell lists of one path apart.
	selectors string
	watch     bool
	// versioned tells of a watch that goes on from a resource version, which the
	// server may have forgotten.
	versioned bool
	dryRun    bool
	event     bool
	// discovery asks which custom resources there are.
	discovery bool
	// housekeeping is done in any case, however little there is to do.
	housekeeping bool
	// guarded tells of a write that names the resource version that it is for.
	guarded bool
}

// callOf reads a request, and leaves its body to be read again.
func callOf(r *http.Request) (call, error) {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	c := call{
		method: r.Method, path: r.URL.Path, selectors: query.Get("labelSelector") + query.Get("fieldSelector"),
		watch:  query.Has("watch") && query.Get("watch") != "false" && query.Get("watch") != "0",
		dryRun: query.Has("dryRun"),
		event:  strings.HasSuffix(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/events/"),
	}
	c.discovery = c.path == "/apis/"+v1alpha1.GroupVersion.String()
	c.housekeeping = c.discovery || c.path == "/version" || strings.HasPrefix(c.path, "/apis/coordination.k8s.io/") && !c.watch
	c.versioned = c.watch && version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
	if r.Method != http.MethodPatch && r.Method != http.MethodDelete {
		return c, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return c, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.guarded = guarded(r.Method, body)
	return c, nil
}

// guarded finds the resource version in a patch or in the options of a delete.
func guarded(method string, body []byte) bool {
	if method == http.MethodPatch {
		var patch struct {
			Metadata struct{ ResourceVersion string }
		}
		return json.Unmarshal(body, &patch) == nil && patch.Metadata.ResourceVersion != ""
	}
	options := &metav1.DeleteOptions{}
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), body, options); err != nil {
		return false
	}
	return options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
}

// writes reports whether the call changes what is stored.
func (c call) writes() bool {
	return c.method != http.MethodGet && !c.dryRun
}

// resource is the kind of what a list or watch is for.
func (c call) resource() string { return path.Base(c.path) }

// key is what the schedule and the ledger take for the same kind of call.
func (c call) key() string {
	if c.watch {
		return "WATCH " + c.path
	}
	return c.method + " " + c.path + " " + c.selectors
}
