package follow

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// server is a cluster whose API server may be down.
type server struct {
	*fake.Clientset

	mu      sync.Mutex
	isDown  bool
	watches []watch.Interface
}

// errRefused is what a client gets of a server that is down. An informer tries a watch again for ever then, and a list, too.
var errRefused = &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/api/v1/pods", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.isDown, nil, errRefused
	})
	s.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.isDown {
			return true, nil, errRefused
		}
		begun, err := s.Tracker().Watch(action.GetResource(), action.GetNamespace())
		s.watches = append(s.watches, begun)
		return true, begun, err
	})
	return s
}

// setDown stops the server with all watches, or starts it.
func (s *server) setDown(isDown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isDown = isDown
	if !isDown {
		return
	}
	for _, begun := range s.watches {
		begun.Stop()
	}
	s.watches = nil
}

// countPods shows how many Pods there are.
func countPods(l *Live) func(context.Context) *View {
	return func(context.Context) *View {
		pods := len(Current[*corev1.Pod](l.Pods))
		return &View{Print: func(out io.Writer, _, _ int) error {
			_, err := fmt.Fprintf(out, "%d Pods\n", pods)
			return err
		}}
	}
}

// TestLostServer: what is shown is said to be old while the API server is away, once, and to be new again.
func TestLostServer(t *testing.T) {
	runtest.InBubble(t, func(t *testing.T) {
		s, out, told := newServer(), &runtest.Transcript{}, &runtest.Transcript{}
		l := NewCluster(s, "")
		f := &Follower{Out: out, ErrOut: told, Look: countPods(l), TellNotes: func(*View) {}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx, l, func() {}) }()
		time.Sleep(Interval + Interval/2)
		require.Equal(t, "0 Pods\n", out.Take())

		s.setDown(true)
		time.Sleep(staleAfter)
		require.Empty(t, told.Take(), "a watch may end at any time")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "no updates for 10s, so what is shown is old: connect: connection refused\n", told.Take())
		require.Equal(t, "no updates for 2m10s, so what is shown is old: connect: connection refused", l.Stale())

		s.setDown(false)
		time.Sleep(2 * time.Minute) // client-go waits up to a minute before it tries again
		require.Equal(t, "there are updates again\n", told.Take())
		_, err := s.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(2 * Interval)
		require.Equal(t, "1 Pods\n", out.Take())
		require.Empty(t, told.Take())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestNoFirstView ends if the API server goes away before there is anything to show.
func TestNoFirstView(t *testing.T) {
	runtest.InBubble(t, func(t *testing.T) {
		s := newServer()
		s.setDown(true)
		isAnswered := false
		s.PrependReactor("list", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			isFirst := !isAnswered
			isAnswered = true
			return isFirst, &resourcev1.ResourceClaimList{}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		started := time.Now()
		err := NewCluster(s, "").Run(ctx, func() error { return nil })
		require.EqualError(t, err, "watch events: "+errRefused.Error())
		require.InDelta(t, firstViewTimeout, time.Since(started), float64(Interval))
	})
}

// TestStaleOnScreen has the line on the screen as long as there are no updates, with their age.
func TestStaleOnScreen(t *testing.T) {
	t.Parallel()
	out := &runtest.Transcript{}
	f := &Follower{Look: countPods(&Live{}), Screen: screen.New(out, func() (int, int, error) { return 80, 5, nil })}
	shows := func(stale string) string {
		out.Take()
		require.NoError(t, f.Update(t.Context(), 1, stale))
		return out.Take()
	}
	require.Contains(t, shows(""), "0 Pods")
	require.Empty(t, shows(""))
	require.Contains(t, shows("no updates for 10s"), "no updates for 10s")
	require.Contains(t, shows("no updates for 11s"), "no updates for 11s")
	require.Empty(t, shows("no updates for 11s"))
	require.NotContains(t, shows(""), "no updates")
}
