package faults

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestPossible holds the faults against what a server or a network could do.
func TestPossible(t *testing.T) {
	t.Parallel()
	for about, test := range map[string]struct {
		method, target, body string
		never                []fault
	}{
		"create":             {"POST", "/slices", "{}", []fault{conflict, expired, expireStream, stall, cutCleanly, cutInFrame, unknown, unready}},
		"get":                {"GET", "/slices/a", "", []fault{conflict, expired, expireStream, stall, cutCleanly, cutInFrame, unknown, unready}},
		"patch":              {"PATCH", "/slices/a", `{"metadata": {"resourceVersion": "1"}}`, []fault{expired, expireStream, stall, cutCleanly, cutInFrame, unknown, unready}},
		"delete":             {"DELETE", "/slices/a", "{}", []fault{conflict, expired, expireStream, stall, cutCleanly, cutInFrame, unknown, unready}},
		"discovery":          {"GET", "/apis/dra.kwok.x-k8s.io/v1alpha1", "", []fault{conflict, expired, expireStream, stall, cutCleanly, cutInFrame}},
		"watch from a point": {"GET", "/slices?watch=true&resourceVersion=7", "", []fault{conflict, truncate, dropAfter, failAfter, unknown, unready}},
		"watch from now":     {"GET", "/slices?watch=true", "", []fault{conflict, truncate, dropAfter, failAfter, expired, expireStream, unknown, unready}},
		"watch as a list":    {"GET", "/slices?watch=true&sendInitialEvents=true&resourceVersion=7", "", []fault{conflict, truncate, dropAfter, failAfter, expired, expireStream, unknown, unready}},
	} {
		c, err := callOf(httptest.NewRequestWithContext(t.Context(), test.method, test.target, strings.NewReader(test.body)))
		require.NoError(t, err)
		var never []fault
		for f := delay; f < faultCount; f++ {
			if !f.possible(c) {
				never = append(never, f)
			}
		}
		require.ElementsMatch(t, test.never, never, about)
	}
}

// TestScheduleVaries: who asks every five seconds meets each phase soon, also of a schedule that
// lasts five seconds.
func TestScheduleVaries(t *testing.T) {
	t.Parallel()
	s := &schedule{phases: []phase{{length: time.Second}, {length: 4 * time.Second}}}
	met := map[*phase]bool{}
	for i := range 12 {
		met[s.at(time.Duration(i)*5*time.Second)] = true
	}
	require.Len(t, met, 2)
}

// TestScheduleReplays draws for calls in two orders: what becomes of a call does
// not hang on the others.
func TestScheduleReplays(t *testing.T) {
	t.Parallel()
	calls := func(reverse bool) map[string][]fault {
		s := newSchedule(7, rand.New(rand.NewPCG(7, 0)), faultTime)
		s.phases = []phase{{length: time.Hour, chances: s.phases[0].chances}}
		paths := []string{"/a", "/b", "/c"}
		if reverse {
			paths = []string{"/c", "/b", "/a"}
		}
		drawn := map[string][]fault{}
		for range 50 {
			for _, path := range paths {
				drawn[path] = append(drawn[path], s.next(call{method: "PATCH", path: path}))
			}
		}
		return drawn
	}
	require.Equal(t, calls(false), calls(true))
	require.Contains(t, calls(false)["/a"], none)
}

// recorded is a server that counts what it executes.
func recorded(t *testing.T, answer string) (p *proxy, executed *[]string) {
	executed = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*executed = append(*executed, r.Method+" "+r.URL.Path)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	touch := func(_ context.Context, path string) error {
		*executed = append(*executed, "touch "+path)
		return nil
	}
	return &proxy{target: target, transport: http.DefaultTransport, touch: touch}, executed
}

// TestPlay has each fault do to a write what it says, and execute it once at most.
func TestPlay(t *testing.T) {
	t.Parallel()
	patch := call{method: "PATCH", path: "/a"}
	for f, want := range map[fault]struct {
		code     int
		executed int
		broken   bool
	}{
		none:        {200, 1, false},
		dropBefore:  {0, 0, true},
		dropAfter:   {0, 1, true},
		truncate:    {200, 1, true},
		tooMany:     {429, 0, false},
		broken:      {500, 0, false},
		unavailable: {503, 0, false},
		failAfter:   {504, 1, false},
		conflict:    {409, 0, false},
	} {
		p, executed := recorded(t, "an answer")
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.play(w, r, patch, f) }))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, front.URL+"/a", strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		code := 0
		if err == nil {
			code = response.StatusCode
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		require.Equal(t, want.code, code, f)
		require.Equal(t, want.broken, err != nil, "fault %d: %v", f, err)
		require.Len(t, *executed, want.executed, f)
		front.Close()
	}
}

// TestConflictIsReal has a guarded write lose a race that takes place.
func TestConflictIsReal(t *testing.T) {
	t.Parallel()
	p, executed := recorded(t, "")
	p.play(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/a", nil), call{method: "PATCH", path: "/a", guarded: true}, conflict)
	require.Equal(t, []string{"touch /a", "PATCH /a"}, *executed)
}

// TestFrames takes watches apart as both encodings write them.
func TestFrames(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", protobuf} {
		var stream bytes.Buffer
		var ends []int
		for _, name := range []string{"first", "second"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
			require.NoError(t, encodeEvent(&stream, kind, &watch.Event{Type: watch.Added, Object: pod}))
			ends = append(ends, stream.Len())
		}
		all := stream.String()
		frames := framesOf(&http.Response{Header: http.Header{"Content-Type": {kind + ";stream=watch"}}, Body: io.NopCloser(&stream)})
		first, err := frames.next()
		require.NoError(t, err)
		require.Equal(t, all[:ends[0]], string(first))
		second, err := frames.next()
		require.NoError(t, err)
		require.Equal(t, all[ends[0]:], string(second))
		_, err = frames.next()
		require.ErrorIs(t, err, io.EOF)
	}
}
