package release

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAskAtTheSameTime: no server answers before all were asked.
func TestAskAtTheSameTime(t *testing.T) {
	h := newHost(t)
	files, err := Kubernetes("v1.36.3", linux, "kubectl", "kube-scheduler")
	require.NoError(t, err)
	var asked sync.WaitGroup
	asked.Add(len(files))
	for _, f := range files {
		h.files["/kubernetes/v1.36.3/bin/linux/amd64/"+f.Program] = program
		h.files["/kubernetes/v1.36.3/bin/linux/amd64/"+f.Program+".sha256"] = []byte(sha(program))
	}
	h.serve = func(w http.ResponseWriter, _ *http.Request, content []byte) {
		asked.Done()
		asked.Wait()
		_, _ = w.Write(content)
	}
	require.NoError(t, Ask(t.Context(), files))
}

func TestAskWhatIsNotThere(t *testing.T) {
	h := newHost(t)
	f := h.kubectl(t)
	require.NoError(t, Ask(t.Context(), []File{f}))

	h.files["/kubernetes/v1.36.3/bin/linux/amd64/kubectl.sha256"] = []byte("<html>sign in</html>")
	require.ErrorContains(t, Ask(t.Context(), []File{f}), "find the SHA-256 of kubectl in "+f.Sums)

	h.kubectl(t)
	delete(h.files, "/kubernetes/v1.36.3/bin/linux/amd64/kubectl")
	require.EqualError(t, Ask(t.Context(), []File{f}), hostOf(h.URL)+": the server refuses: 404 Not Found")

	h.Close()
	require.ErrorContains(t, Ask(t.Context(), []File{{URL: f.URL, Sums: "http://releases.invalid/kubectl"}}), "releases.invalid: ")
	require.ErrorContains(t, Ask(t.Context(), []File{f}), "connection refused")
}

// TestAskWithoutAnswer: connections are taken, and nothing ever comes back.
func TestAskWithoutAnswer(t *testing.T) {
	h := newHost(t)
	f := h.kubectl(t)
	h.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("no answer within 20ms"))
	defer cancel()
	require.EqualError(t, Ask(ctx, []File{f}), hostOf(h.URL)+": no answer within 20ms")
}

// TestAskThroughProxy: only the proxy of the environment knows the server. Go reads
// that environment once, so another process asks.
func TestAskThroughProxy(t *testing.T) {
	const address = "http://releases.invalid/kubectl"
	f := File{Program: "kubectl", URL: address, Sums: address + ".sha256"}
	if os.Getenv("ASK_THROUGH_PROXY") != "" {
		require.NoError(t, Ask(t.Context(), []File{f}))
		return
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := program
		if r.URL.String() == f.Sums {
			content = []byte(sha(program))
		}
		_, _ = w.Write(content)
	}))
	defer proxy.Close()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAskThroughProxy$")
	again.Env = append(os.Environ(), "ASK_THROUGH_PROXY=yes", "HTTP_PROXY="+proxy.URL)
	out, err := again.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestPace: a server that sends something, but too little, is given up.
func TestPace(t *testing.T) {
	trickle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(program[:10])
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer trickle.Close()
	_, err := pace{attempts: 1, interval: 50 * time.Millisecond, bytes: 1 << 40}.readAll(t.Context(), trickle.URL)
	require.EqualError(t, err, "the server sent less than 1048576 MiB in 50ms")
	require.Equal(t, hurried, Downloader{Hurry: true}.newPace())
}
