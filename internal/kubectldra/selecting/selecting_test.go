package selecting

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/follow"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/clustertest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// restrict makes a client with the rights of a namespace's user, or of none.
func restrict(namespace string) *fake.Clientset {
	client := fake.NewClientset(clustertest.Objects()...)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == namespace && namespace != "" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "", nil)
	})
	return client
}

// TestNamespaceUser answers with what the claims of a namespace say.
func TestNamespaceUser(t *testing.T) {
	t.Parallel()
	reader := reading.NewReaderOf(restrict("team"))
	c, err := ReadCluster(t.Context(), reader, "team", false)
	require.NoError(t, err)
	states := map[string]inventory.State{}
	for _, device := range c.ListDevices() {
		states[device.Node+"/"+device.Pool+"/"+device.Name] = device.State
	}
	require.Equal(t, map[string]inventory.State{
		"a/a/gpu-0": inventory.Prepared, "a/a/gpu-1": inventory.Failing, "b/b/gpu-0-half-0": inventory.Prepared, "d/d/gpu-9": inventory.Prepared, "/rail-1/port": inventory.Prepared,
	}, states)
	var unseen []string
	for _, lacked := range reader.Unseen() {
		unseen = append(unseen, lacked.Resource)
	}
	require.ElementsMatch(t, []string{"resourceslices", "resourceclaims", "pods", "events", "nodes", "devicetaintrules"}, unseen)

	_, err = ReadCluster(t.Context(), reading.NewReaderOf(restrict("")), "team", false)
	require.EqualError(t, err, "cannot list resourceslices: ask for the ClusterRole dra-viewer, or for the right to list them")
}

// TestAllocationTimes: without a time in the claim it is the time at which its first Pod was scheduled.
func TestAllocationTimes(t *testing.T) {
	t.Parallel()
	claim := clustertest.Claim("c", clustertest.GPU, "a", "gpu-0", "first")
	claim.Status.Allocation.AllocationTimestamp = nil
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, claim.Status.ReservedFor[0])
	claim.Status.ReservedFor[1].Name = "second"
	first, second := clustertest.Pod("first", "a", corev1.PodRunning, "c"), clustertest.Pod("second", "a", corev1.PodRunning, "c")
	second.Status.Conditions[0].LastTransitionTime = metav1.NewTime(clustertest.Start.Add(time.Minute))
	c, err := ReadCluster(t.Context(), reading.NewReaderOf(fake.NewClientset(claim, second, first)), "team", false)
	require.NoError(t, err)
	require.Equal(t, map[string]time.Time{"team/c": clustertest.Start}, c.AllocationTimes())
}

// TestFlags says what is wrong with a flag.
func TestFlags(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"--selector=a==b==c": `parse -l "a==b==c": `,
		"--state=busy":       `parse --state "busy": it is one of free, blocked, allocated, prepared, failing, tainted, gone, in-use, unhealthy`,
		"--attribute==x":     `parse --attribute "=x": write NAME=VALUE`,
		"--attribute=x!":     `parse --attribute "x!": write NAME=VALUE`,
	} {
		command := &cobra.Command{Use: "devices"}
		q := NewQuestion(command, reading.NewFlags(), genericiooptions.IOStreams{})
		q.AddDeviceFlagsTo(command)
		require.NoError(t, command.ParseFlags([]string{argument}))
		require.ErrorContains(t, q.Parse(), want)
	}
}

func TestMatchesPattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, pattern string
		want          bool
	}{
		{"H100", "H100", true},
		{"H100", "h100", false},
		{"NVIDIA H100 80GB", "*H100*", true},
		{"NVIDIA H200 80GB", "*H100*", false},
		{"gpu-12", "gpu-*2", true},
		{"gpu-2", "gpu-2*2", false},
		{"", "*", true},
	} {
		require.Equal(t, test.want, MatchesPattern(test.text, test.pattern), "%s %s", test.text, test.pattern)
	}
}

// TestWatch shows the answer again when a watch reports a change, also to the user of a namespace.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*fake.Clientset{"everything": fake.NewClientset(clustertest.Objects()...), "namespace": restrict("team")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reader := reading.NewReaderOf(client)
				_, err := ReadCluster(t.Context(), reader, "team", false)
				require.NoError(t, err)
				out, told := &runtest.Transcript{}, &runtest.Transcript{}
				q := NewQuestion(&cobra.Command{Use: "devices"}, reading.NewFlags(), genericiooptions.IOStreams{Out: out, ErrOut: told})
				require.NoError(t, q.Parse())
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- q.follow(ctx, Watch(reader, "team"), func(c *Cluster) *Answer {
						return &Answer{Headline: cli.CountWith(len(c.Claims), "claim", "claims"), Tables: output.Tables{}}
					}, reader.Unseen())
				}()
				wait := func() { time.Sleep(3 * follow.Interval); synctest.Wait() }
				wait()
				require.Equal(t, "5 claims\n", out.String())
				require.NoError(t, client.ResourceV1().ResourceClaims("team").Delete(t.Context(), "lost", metav1.DeleteOptions{}))
				wait()
				require.Equal(t, "5 claims\n\n4 claims\n", out.String())
				require.Equal(t, name == "namespace", strings.Contains(told.String(), "cannot list resourceclaims in all namespaces: "))
				cancel()
				require.NoError(t, <-ended)
			})
		})
	}
}
