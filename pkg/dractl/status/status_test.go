package status

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var plain, coloured strings.Builder
	require.NoError(t, w.overview().print(&plain, output.Table, false))
	require.Equal(t, `NODE       DRIVER            POOL     GENERATION   FREE   ALLOCATED   PREPARED   TAINTED   SLICES
a          gpu.example.com   a        3            1      1           2          0         1/1
b          gpu.example.com   b        3            0      0           0          1         1/2 incomplete
<shared>   gpu.example.com   fabric   3            1      0           0          0         1/1

Pods that wait for their claims to be prepared:
NAMESPACE   POD     NODE   REASON
default     bare    a      claim none has no devices
default     late    a      not prepared yet: reported
default     lost    a      claim gone does not exist
default     waits   a      driver is not registered
`, plain.String())
	require.NoError(t, w.overview().print(&coloured, output.Table, true))
	require.Contains(t, coloured.String(), "\x1b[31mb          gpu.example.com")
	require.Equal(t, plain.String(), strings.NewReplacer(red, "", reset, "").Replace(coloured.String()), "colours move nothing")
	require.Equal(t, 1, strings.Count(coloured.String(), red))
}

func TestOverviewAsValue(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var out strings.Builder
	c := &command{streams: cli.Streams{Out: &out}, output: output.Flag{Format: output.JSON}}
	require.NoError(t, c.show(w))
	var shown struct {
		Pools []struct {
			Node    string
			Devices map[string]int
		}
		Waiting []Waiting
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &shown))
	require.Equal(t, map[string]int{"free": 1, "allocated": 1, "prepared": 2, "tainted": 0}, shown.Pools[0].Devices)
	require.Len(t, shown.Waiting, 4)
}

func TestDevices(t *testing.T) {
	t.Parallel()
	w, err := read(t.Context(), fake.NewClientset(fleet()...))
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printDevices(&out, output.Table, w.devices("a")))
	require.Equal(t, `DEVICE   STATE       PRODUCT   MEMORY   UUID          CLAIM              POD
gpu-0    prepared    H100      80Gi     GPU-a-gpu-0   default/runs       default/runs
gpu-1    allocated   H100      80Gi     GPU-a-gpu-1   default/waits      default/waits
gpu-2    prepared    H100      80Gi     GPU-a-gpu-2   default/reported   default/late
gpu-3    free        H100      80Gi     GPU-a-gpu-3   <none>             <none>
`, out.String())
	out.Reset()
	require.NoError(t, printDevices(&out, output.Wide, w.devices("b")))
	require.Contains(t, out.String(), "xid=79:NoExecute")
	require.Empty(t, w.devices("c"))
}

// TestPath has a claim that a driver reports on, and two Pods, of which one is
// gone.
func TestPath(t *testing.T) {
	t.Parallel()
	objects := fleet()
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}
	objects = append(objects, failure("late", "not yet", 3))
	client := fake.NewClientset(objects...)
	late := pod("late", "a", "reported", scheduled, ready)
	_, err := client.CoreV1().Pods("default").Update(t.Context(), late, metav1.UpdateOptions{})
	require.NoError(t, err)
	steps, err := path(t.Context(), client, "default", "reported")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, printSteps(&out, output.Table, steps))
	require.Equal(t, `TIME                   AFTER   OBJECT                           STEP                             DETAIL
2026-01-02T03:04:05Z   0s      claim                            created                          gpu wants 1 of gpu
2026-01-02T03:04:06Z   1s      Pod late                         created                          <none>
2026-01-02T03:04:07Z   2s      claim                            allocated                        gpu=gpu.example.com/a/gpu-2
2026-01-02T03:04:07Z   2s      claim                            reserved                         for pods/late
2026-01-02T03:04:08Z   3s      Pod late                         PodScheduled=True                on node a
2026-01-02T03:04:08Z   3s      Pod late                         FailedPrepareDynamicResources    not yet (2 times)
2026-01-02T03:04:09Z   4s      device gpu.example.com/a/gpu-2   Ready=True                       Prepared
2026-01-02T03:04:11Z   6s      Pod late                         PodReadyToStartContainers=True   <none>
`, out.String())

	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "late", metav1.DeleteOptions{}))
	steps, err = path(t.Context(), client, "default", "reported")
	require.NoError(t, err)
	require.Contains(t, steps, Step{What: "gone", Object: "Pod late", Detail: "the claim is still reserved for it", rank: rankEvent, at: at(2).Time})

	_, err = path(t.Context(), client, "default", "none-such")
	require.ErrorContains(t, err, "get resourceclaim default/none-such:")
}

// screen is what the command writes, safe to read meanwhile.
type screen struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (s *screen) Write(text []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(text)
}

func (s *screen) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// TestFollow shows what changes, and nothing while nothing does.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(fleet()...)
		shown := &screen{}
		c := &command{streams: cli.Streams{Out: shown}, output: output.Flag{Format: output.Table}}
		ended := make(chan error, 1)
		go func() { ended <- c.follow(ctx, client) }()
		afterTicks()
		require.Equal(t, 1, strings.Count(shown.String(), "GENERATION"))
		afterTicks()
		require.Equal(t, 1, strings.Count(shown.String(), "GENERATION"), "nothing has changed")
		_, err := client.ResourceV1().ResourceSlices().Create(ctx, slice("c", 1, "gpu-0"), metav1.CreateOptions{})
		require.NoError(t, err)
		afterTicks()
		require.Equal(t, 2, strings.Count(shown.String(), "GENERATION"))
		require.Contains(t, shown.String(), "\nc ")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestFollowForbidden ends where the user must not read.
func TestFollowForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "", nil)
		})
		c := &command{streams: cli.Streams{Out: &screen{}}, output: output.Flag{Format: output.Table}}
		require.ErrorContains(t, c.follow(t.Context(), client), "forbidden")
	})
}
