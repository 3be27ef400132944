package status

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// following is a command that follows something.
type following struct {
	*fake.Clientset
	out    *runtest.Transcript
	cancel context.CancelFunc
	ended  chan error
}

// watch follows what a cluster of these objects shows by the view that is made for its client.
func watch(t *testing.T, format output.Format, of func(*command, *fake.Clientset) (*follow.Live, func(context.Context) *view), objects ...runtime.Object) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{Clientset: fake.NewClientset(objects...), out: &runtest.Transcript{}, cancel: cancel, ended: make(chan error, 1)}
	c := &command{streams: cli.Streams{Out: f.out, ErrOut: io.Discard}, output: output.Flag{Format: format}}
	l, look := of(c, f.Clientset)
	go func() { f.ended <- c.followChanges(ctx, l, look) }()
	afterTicks()
	return f
}

// end ends it as ^C does.
func (f *following) end(t *testing.T) {
	t.Helper()
	f.cancel()
	require.NoError(t, <-f.ended)
}

func ofCluster(c *command, client *fake.Clientset) (*follow.Live, func(context.Context) *view) {
	l := follow.NewCluster(client, "")
	return l, func(ctx context.Context) *view { return c.viewOverview(ctx, liveWorld(l, false)) }
}

// TestFollow shows what changes, and nothing while nothing does.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := watch(t, output.Table, ofCluster, fleet()...)
		require.Equal(t, 1, strings.Count(f.out.String(), "Devices by product"))
		afterTicks()
		require.Equal(t, 1, strings.Count(f.out.String(), "Devices by product"), "nothing has changed")
		_, err := f.CoreV1().Pods("default").Create(t.Context(), pod("no-claims", "a", "runs", ready), metav1.CreateOptions{})
		require.NoError(t, err)
		afterTicks()
		require.Equal(t, 1, strings.Count(f.out.String(), "Devices by product"), "nothing that is shown has changed")
		f.create(t, slice("c", 1, "gpu-0"))
		afterTicks()
		require.Equal(t, 2, strings.Count(f.out.String(), "\nPools with problems"))
		require.Contains(t, f.out.String(), "\nc ")
		f.end(t)
	})
}

func (f *following) create(t *testing.T, slice *resourcev1.ResourceSlice) {
	t.Helper()
	_, err := f.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestFollowAsValue has a document for each change.
func TestFollowAsValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := watch(t, output.JSON, ofCluster, fleet()...)
		f.create(t, slice("c", 1, "gpu-0"))
		afterTicks()
		f.end(t)
		documents := json.NewDecoder(strings.NewReader(f.out.String()))
		for _, pools := range []int{3, 4} {
			var shown struct{ Pools []struct{ Node string } }
			require.NoError(t, documents.Decode(&shown))
			require.Len(t, shown.Pools, pools)
		}
		require.ErrorIs(t, documents.Decode(new(any)), io.EOF)

		f = watch(t, output.YAML, ofCluster, fleet()...)
		f.create(t, slice("c", 1, "gpu-0"))
		afterTicks()
		f.end(t)
		require.Equal(t, 1, strings.Count(f.out.String(), "\n---\n"))
		require.NotContains(t, f.out.String(), "\n\n")
	})
}

// TestFollowNode shows how a node gets its first device.
func TestFollowNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := watch(t, output.Table, func(c *command, client *fake.Clientset) (*follow.Live, func(context.Context) *view) {
			l := follow.NewNode(client, "c")
			return l, func(context.Context) *view { return c.viewNode(liveWorld(l, false), "c") }
		}, fleet()...)
		require.Empty(t, f.out.String())
		f.create(t, slice("c", 1, "gpu-0"))
		afterTicks()
		require.Regexp(t, `^DEVICE .*\ngpu-0 +free .*\n$`, f.out.String())
		f.end(t)
	})
}

// TestFollowClaim shows the steps of a claim as they come, also that it is deleted.
func TestFollowClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := watch(t, output.Table, func(_ *command, client *fake.Clientset) (*follow.Live, func(context.Context) *view) {
			l := follow.NewClaim(client, "default", "waits")
			return l, func(context.Context) *view { return viewClaim(l, "default", "waits") }
		}, fleet()...)
		require.Contains(t, f.out.String(), "reserved")
		require.NotContains(t, f.out.String(), " prepared ")
		_, err := f.CoreV1().Pods("default").Update(t.Context(), pod("waits", "a", "waits", ready), metav1.UpdateOptions{})
		require.NoError(t, err)
		afterTicks()
		require.Contains(t, f.out.String(), " prepared ")
		shown := f.out.String()
		require.NoError(t, f.ResourceV1().ResourceClaims("default").Delete(t.Context(), "waits", metav1.DeleteOptions{}))
		afterTicks()
		require.Equal(t, shown, f.out.String(), "a message on the other stream says it")
		require.Equal(t, "claim default/waits is gone", viewClaim(follow.NewClaim(f.Clientset, "default", "waits"), "default", "waits").nothing)
		f.end(t)
	})
}

// TestFollowScreen shows as much as the terminal has room for, again whenever that or the cluster
// changes.
func TestFollowScreen(t *testing.T) {
	t.Parallel()
	out, width, height := &runtest.Transcript{}, 60, 14
	c := &command{streams: cli.Streams{Out: out, ErrOut: io.Discard}, output: output.Flag{Format: output.Table}}
	w, err := readCluster(t.Context(), fake.NewClientset(fleet()...), "")
	require.NoError(t, err)
	f := c.newFollower(func(ctx context.Context) *view { return c.viewOverview(ctx, w) })
	f.Screen = screen.New(out, func() (int, int, error) { return width, height, nil })
	shows := func(changes uint64) string {
		out.Take()
		require.NoError(t, f.Update(t.Context(), changes, ""))
		return strings.ReplaceAll(out.Take(), "\x1b[K", "")
	}
	first := shows(1)
	require.Contains(t, first, "… and 4 more")
	require.NotContains(t, first, "Other pools")
	require.LessOrEqual(t, strings.Count(first, "\n"), height)
	require.Empty(t, shows(1))
	height = 40
	require.Contains(t, shows(1), "Other pools")
	require.Empty(t, shows(1))
	w = &world{}
	require.Contains(t, shows(2), "\x1b[Hno driver has published a ResourceSlice")
	out.Take()
	require.NoError(t, f.Close())
	require.Contains(t, out.String(), "\x1b[?25h", "the cursor is back")
}

// TestFollowForbidden ends where the user must not read.
func TestFollowForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "", nil)
		})
		c := &command{streams: cli.Streams{Out: &runtest.Transcript{}}, output: output.Flag{Format: output.Table}}
		l, look := ofCluster(c, client)
		require.ErrorContains(t, c.followChanges(t.Context(), l, look), "forbidden")
	})
}

// TestFollowLogsNothing: a line of a log amid the tables would be in their way. The view says what
// cannot be read.
func TestFollowLogsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(fleet()...)
		client.PrependReactor("list", "devicetaintrules", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "devicetaintrules"}, "", nil)
		})
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		told, ended := &runtest.Transcript{}, make(chan error, 1)
		c := &command{streams: cli.Streams{Out: &runtest.Transcript{}, ErrOut: told}, output: output.Flag{Format: output.Table}}
		l, look := ofCluster(c, client)
		go func() { ended <- c.followChanges(ctx, l, look) }()
		afterTicks()
		cancel()
		require.NoError(t, <-ended)
		require.Contains(t, told.String(), "DeviceTaintRules are not seen")
		require.NotContains(t, logger.GetSink().(ktesting.Underlier).GetBuffer().String(), "DeviceTaintRules")
	})
}

// afterTicks lets some time go by, in which the command looks twice.
func afterTicks() {
	time.Sleep(2*follow.Interval + follow.Interval/2)
	synctest.Wait()
}
