// Package checkscheduler proves that the stories of kwok-dractl check-scheduler play on a real cluster.
package checkscheduler

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

var (
	seedFlag  = flag.Int64("story-seed", 0, "seed of the first story of TestStories")
	seedsFlag = flag.Int64("story-seeds", 20, "how many stories TestStories plays, each of the seed after that of the one before")
)

// usual is how long a story takes at most, on the average of several.
const usual = 10 * time.Second

// storyCluster is a cluster, and what the stories can have there.
type storyCluster struct {
	cluster  *cluster.Cluster
	config   *rest.Config
	client   kubernetes.Interface
	features story.Features
}

// newStoryCluster starts a cluster that has everything. Nothing plays a kubelet there.
func newStoryCluster(t *testing.T) *storyCluster {
	t.Helper()
	o := harness.AllFeatures(cluster.Options{Disable: []string{cluster.Kwok}})
	// Before Kubernetes 1.36 the scheduler ends with a nil pointer (bindClaim) if a claim is released while it reserves it.
	if harness.AlphaDevices() {
		delete(o.FeatureGates, "DRADeviceBindingConditions")
	}
	switch harness.KubernetesMinor() {
	case 35:
		o.FeatureGates["DRADeviceTaintRules"] = true
	case 36:
		o.FeatureGates = map[string]bool{"DRADeviceTaintRules": true}
		o.RuntimeConfig = map[string]bool{"resource.k8s.io/v1beta2": true}
	case 37:
		o.FeatureGates = map[string]bool{"GenericWorkload": true, "DRAWorkloadResourceClaims": true}
		o.RuntimeConfig = map[string]bool{"scheduling.k8s.io/v1beta1": true}
	}
	c := &storyCluster{cluster: cluster.ForTest(t, o)}
	var err error
	c.config, err = clientcmd.BuildConfigFromFlags("", c.cluster.Kubeconfig())
	require.NoError(t, err)
	c.config.QPS = -1
	c.client, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	c.features, err = story.DetectFeatures(t.Context(), c.client)
	require.NoError(t, err)
	c.features.Quotas = true
	return c
}

func TestStories(t *testing.T) {
	t.Parallel()
	c := newStoryCluster(t)
	t.Run("features", c.testFeatures)
	t.Run("player", c.testPlayer)
	t.Run("script", c.testScript)
}

// testFeatures expects that the probes find all that the cluster has.
func (c *storyCluster) testFeatures(t *testing.T) {
	require.NotEmpty(t, c.features.TaintRuleVersion)
	require.Equal(t, story.Features{
		AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, CountersWithDevices: harness.KubernetesMinor() == 34, ConsumableCapacity: true,
		DeviceTaints: true, TaintRuleVersion: c.features.TaintRuleVersion, BindingConditions: harness.KubernetesMinor() >= 36, ExtendedResources: true,
		PodGroups: harness.KubernetesMinor() >= 37, Quotas: true,
	}, c.features)
}

// testPlayer plays one story after the other. The API server accepts all of it, some Pods are scheduled and some are
// not, and nothing is left behind.
func (c *storyCluster) testPlayer(t *testing.T) {
	if harness.KubernetesMinor() == 35 {
		c.features.PartitionableDevices = false // the scheduler ends with a nil pointer (checkAvailableCounters)
	}
	player, err := story.NewPlayer(c.config)
	require.NoError(t, err)
	bound, pods, all := 0, 0, time.Duration(0)
	for seed := *seedFlag; seed < *seedFlag+*seedsFlag; seed++ {
		s := story.New(fmt.Sprintf("story-%d", seed), seed, c.features)
		started := time.Now()
		rests := 0
		require.NoError(t, player.Play(t.Context(), s, func(ctx context.Context) error {
			rests++
			return awaitQuiet(ctx, c.client, s.ID)
		}))
		took := time.Since(started)
		list, err := c.client.CoreV1().Pods(s.ID).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		pods += len(list.Items)
		here := 0
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				here++
			}
		}
		bound += here
		require.NoError(t, player.Clear(t.Context(), s))
		t.Logf("seed %d: %d steps, %d rests, %d of %d Pods are on nodes, played in %s, cleared in %s", seed, len(s.Steps), rests, here, len(list.Items), took.Round(time.Millisecond), (time.Since(started) - took).Round(time.Millisecond))
		all += took
		requireGone(t, c.client, s.ID)
	}
	require.Less(t, all/time.Duration(*seedsFlag), usual)
	require.Greater(t, bound*100, pods*25, "too few Pods are on nodes")
	require.Greater(t, (pods-bound)*100, pods*5, "too few Pods wait")
}

// testScript tells stories with kubectl alone, until a script has answered for a driver, and deletes what they leave.
func (c *storyCluster) testScript(t *testing.T) {
	if !c.features.BindingConditions {
		t.Skip("no driver has to answer")
	}
	const attempts = 5
	for seed, told := int64(0), 0; told < attempts; seed++ {
		s := story.New(fmt.Sprintf("script-%d", seed), seed, c.features)
		if !slices.ContainsFunc(s.Steps, func(step story.Step) bool { return step.Answer == story.Ready }) {
			continue
		}
		told++
		file := filepath.Join(t.TempDir(), "story.sh")
		script, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, s.WriteScript(script))
		require.NoError(t, script.Close())
		run := func(arguments ...string) string {
			t.Helper()
			command := exec.CommandContext(t.Context(), "sh", append([]string{file}, arguments...)...)
			command.Env = append(os.Environ(), "KUBECONFIG="+c.cluster.Kubeconfig(), "PATH="+filepath.Dir(c.cluster.Binary("kubectl"))+":"+os.Getenv("PATH"), "REST=1")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "seed %d: %s", seed, output)
			return string(output)
		}
		output := run()
		require.Contains(t, output, "namespace/"+s.ID+" created")
		run("clean")
		requireGone(t, c.client, s.ID)
		if strings.Contains(output, "resourceclaim.resource.k8s.io/") && strings.Contains(output, " patched") {
			return
		}
	}
	t.Errorf("no claim had binding conditions in %d stories", attempts)
}

// awaitQuiet waits until no Pod and no claim has changed for a while.
func awaitQuiet(ctx context.Context, client kubernetes.Interface, namespace string) error {
	const quiet = 500 * time.Millisecond
	before, last, since := "", "", time.Now()
	err := wait.PollUntilContextTimeout(ctx, quiet/10, 3*usual, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		claims, err := client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		var state strings.Builder
		for i := range pods.Items {
			fmt.Fprintf(&state, "Pod %s %s %v\n", pods.Items[i].Name, pods.Items[i].ResourceVersion, pods.Items[i].Status.Conditions)
		}
		for i := range claims.Items {
			fmt.Fprintf(&state, "ResourceClaim %s %s\n", claims.Items[i].Name, claims.Items[i].ResourceVersion)
		}
		if state.String() != last {
			before, last, since = last, state.String(), time.Now()
		}
		return time.Since(since) > quiet, nil
	})
	if err != nil {
		return fmt.Errorf("%w: at last\n%s\nbecame\n%s", err, before, last)
	}
	return nil
}

// requireGone fails the test if something of a story is left, except for the namespace, which goes later.
func requireGone(t *testing.T, client kubernetes.Interface, id string) {
	t.Helper()
	selected := metav1.ListOptions{LabelSelector: story.Label + "=" + id}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), selected)
	require.NoError(t, err)
	require.Empty(t, nodes.Items)
	sliceList, err := client.ResourceV1().ResourceSlices().List(t.Context(), selected)
	require.NoError(t, err)
	require.Empty(t, sliceList.Items)
	classes, err := client.ResourceV1().DeviceClasses().List(t.Context(), selected)
	require.NoError(t, err)
	require.Empty(t, classes.Items)
	claims, err := client.ResourceV1().ResourceClaims(id).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, claims.Items)
	pods, err := client.CoreV1().Pods(id).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, pods.Items)
	namespace, err := client.CoreV1().Namespaces().Get(t.Context(), id, metav1.GetOptions{})
	if err == nil {
		require.Equal(t, corev1.NamespaceTerminating, namespace.Status.Phase)
	}
}
