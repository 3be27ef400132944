package kubectldra

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

const (
	namespace = "ml"
	driver    = "gpu.example.com"
	// patience is how long something takes that will never happen.
	patience = 2 * time.Minute
)

// users are people who use the plugin on a cluster, whose objects a test has made: no controller runs, no scheduler
// and no kubelet.
type users struct {
	*testing.T
	cluster *cluster.Cluster
	client  kubernetes.Interface
}

// newCluster starts a cluster with a node of two GPUs, of which Pod train has one, and a Pod that waits.
func newCluster(t *testing.T, options cluster.Options) *users {
	t.Helper()
	options.Disable = []string{cluster.ControllerManager, cluster.Scheduler, cluster.Kwok}
	c := cluster.ForTest(t, options)
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	u := &users{t, c, client}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	u.account("default")
	node, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "h100-0"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Spec.Taints = nil // a controller takes the one that each new node has
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = client.ResourceV1().ResourceSlices().Create(t.Context(), gpus("h100-0"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	u.prepare("train", u.createPod("train", "h100-0"))
	u.createClaim("wants")
	u.createPod("wants", "")
	return u
}

func gpus(node string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}},
	}
	for i := range 2 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: new("H100")}},
			Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return slice
}

func (u *users) createClaim(name string) *resourcev1.ResourceClaim {
	u.Helper()
	claim, err := u.client.ResourceV1().ResourceClaims(namespace).Create(u.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": "a"}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"},
		}}}},
	}, metav1.CreateOptions{})
	require.NoError(u, err)
	return claim
}

// createPod creates a Pod that names the claim of its own name.
func (u *users) createPod(name, node string) *corev1.Pod {
	u.Helper()
	pod, err := u.client.CoreV1().Pods(namespace).Create(u.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/train", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(u, err)
	return pod
}

// prepare does for a claim what the scheduler, the driver and the kubelet of its Pod would.
func (u *users) prepare(name string, pod *corev1.Pod) {
	u.Helper()
	claim := u.createClaim(name)
	claim.Status = resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "gpu", Driver: driver, Pool: pod.Spec.NodeName, Device: "gpu-0",
		}}}},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
	}
	_, err := u.client.ResourceV1().ResourceClaims(namespace).UpdateStatus(u.Context(), claim, metav1.UpdateOptions{})
	require.NoError(u, err)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err = u.client.CoreV1().Pods(namespace).UpdateStatus(u.Context(), pod, metav1.UpdateOptions{})
	require.NoError(u, err)
}

// account creates a ServiceAccount, and returns its kubeconfig.
func (u *users) account(name string) string {
	u.Helper()
	_, err := u.client.CoreV1().ServiceAccounts(namespace).Create(u.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(u, err)
	kubeconfig, err := sidecar.Kubeconfig(u.Context(), u.cluster, namespace, name)
	require.NoError(u, err)
	return kubeconfig
}

// awaitRights waits until the API server knows a binding.
func (u *users) awaitRights(kubeconfig string, can ...string) {
	u.Helper()
	require.Eventually(u, func() bool {
		_, err := u.cluster.Kubectl(u.Context(), append([]string{"--kubeconfig", kubeconfig, "auth", "can-i", "-q"}, can...)...)
		return err == nil
	}, patience, 200*time.Millisecond)
}

// audited are the requests of an account.
func (u *users) audited(account string) []cluster.AuditEvent {
	u.Helper()
	events, err := u.cluster.Audited(func(event *cluster.AuditEvent) bool {
		return event.User.Username == "system:serviceaccount:"+namespace+":"+account && !isOfKubectl.MatchString(event.UserAgent)
	})
	require.NoError(u, err)
	return events
}

// isOfKubectl matches the requests of tests that wait for rights.
var isOfKubectl = regexp.MustCompile(`^kubectl/`)

// result is what a command did.
type result struct {
	code        int
	out, errOut string
}

func (r result) String() string { return fmt.Sprintf("exit code %d\n%s\n%s", r.code, r.out, r.errOut) }

// run runs a command as a user.
func (u *users) run(kubeconfig string, arguments ...string) result {
	u.Helper()
	var out, errOut buffer
	code := runCommand(u.Context(), &out, &errOut, kubeconfig, arguments...)
	return result{code, out.String(), errOut.String()}
}

func runCommand(ctx context.Context, out, errOut *buffer, kubeconfig string, arguments ...string) int {
	command := kubectldra.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut})
	command.SetArgs(append(arguments, "--kubeconfig", kubeconfig))
	if len(arguments) > 0 && arguments[0] == "__complete" {
		command.SetArgs(append([]string{"__complete", "--kubeconfig", kubeconfig}, arguments[1:]...))
	}
	err := command.ExecuteContext(ctx)
	if cli.ExitCode(err) == cli.ExitFailed {
		_, _ = fmt.Fprintf(errOut, "error: %v\n", err)
	}
	return cli.ExitCode(err)
}

// buffer is written and read by several goroutines.
type buffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(data)
}

func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// knownLines are those of the commands that the plugin has.
func (u *users) knownLines() [][]string {
	var known [][]string
	root := kubectldra.New(genericiooptions.IOStreams{})
	for _, arguments := range lines {
		if command, _, err := root.Find(arguments); err == nil && command != root {
			known = append(known, arguments)
		}
	}
	require.Greater(u, len(known), 5)
	return known
}

// watches has a user watch Pods until one is released.
func (u *users) watches(kubeconfig string) {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), patience)
	defer cancel()
	var out, errOut buffer
	ended := make(chan int, 1)
	go func() { ended <- runCommand(ctx, &out, &errOut, kubeconfig, "pods", "-w", "-n", namespace) }()
	shows := func(line string) {
		u.Helper()
		require.Eventually(u, func() bool { return regexp.MustCompile(line).MatchString(out.String()) }, patience, 100*time.Millisecond, "%s: %s %s", line, &out, &errOut)
	}
	shows(`(?m)^wants +wants .* waiting `)
	passing := u.createPod("passing", "h100-0")
	shows(`(?m)^passing +passing .* claim passing does not exist`)
	u.prepare("passing", passing)
	shows(`(?m)^passing +passing +gpu.example.com .* prepared `)
	require.NoError(u, u.client.CoreV1().Pods(namespace).Delete(u.Context(), "passing", *metav1.NewDeleteOptions(0)))
	shows(`(?m)^passing +passing .* released `)
	cancel()
	require.Zero(u, <-ended, errOut.String())
	require.NotContains(u, errOut.String(), "cannot ")
	require.NoError(u, u.client.ResourceV1().ResourceClaims(namespace).Delete(u.Context(), "passing", metav1.DeleteOptions{}))
}

// TestClaims: the way of a claim has times that are only in managed fields and conditions, and what check suggests is
// what mends the cluster.
func TestClaims(t *testing.T) {
	t.Parallel()
	u := newCluster(t, cluster.Options{})
	kubeconfig := u.cluster.Kubeconfig()
	r := u.run(kubeconfig, "claim", "train", "-n", namespace)
	require.Zero(t, r.code, r)
	require.Regexp(t, `^Claim ml/train is prepared since \S+: gpu.example.com/h100-0/gpu-0 \(H100\) for Pod train\n  held by pods/train on node h100-0: Pending\n`, r.out)
	require.Regexp(t, `(?m)^\d{4}-\S+ +\S+ +claim +created `, r.out)
	require.Regexp(t, `(?m)^\S+ +\S+ +claim +allocated +gpu=gpu.example.com/h100-0/gpu-0$`, r.out)
	require.Regexp(t, `(?m)^\d{4}-\S+ +\S+ +claim +prepared +for pods/train$`, r.out)
	r = u.run(kubeconfig, "claims", "-n", namespace, "-o", "jsonpath={range .items[*]}{.claim}={.state} {end}")
	require.Equal(t, "train=prepared wants=waiting ", r.out)

	r = u.run(kubeconfig, "check")
	require.Zero(t, r.code, r)
	require.Regexp(t, `^No problems found in 1 pool with 2 devices, 2 claims\n`, r.out)

	// The Pod goes, and no controller releases its claim.
	require.NoError(t, u.client.CoreV1().Pods(namespace).Delete(t.Context(), "train", *metav1.NewDeleteOptions(0)))
	u.mends(kubeconfig, "staleReservation")
	claim, err := u.client.ResourceV1().ResourceClaims(namespace).Get(t.Context(), "train", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, claim.Status.ReservedFor)
	require.NotNil(t, claim.Status.Allocation)

	// The node goes, and no controller deletes its slices.
	require.NoError(t, u.client.CoreV1().Nodes().Delete(t.Context(), "h100-0", metav1.DeleteOptions{}))
	u.mends(kubeconfig, "nodeGone")

	// Now nobody publishes the device of the claim, which nobody uses.
	u.mends(kubeconfig, "deviceGone")
	claim, err = u.client.ResourceV1().ResourceClaims(namespace).Get(t.Context(), "train", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, claim.Status.Allocation)
}

// mends runs the command that a finding suggests, after which the finding is gone.
func (u *users) mends(kubeconfig, check string) {
	u.Helper()
	fix := []string{"check", "-o", fmt.Sprintf("jsonpath={.items[?(@.check==%q)].fix}", check)}
	r := u.run(kubeconfig, fix...)
	require.Equal(u, 1, r.code, r)
	require.NotEmpty(u, r.out, "%s: %s", check, u.run(kubeconfig, "check"))
	u.shell(r.out)
	require.Empty(u, u.run(kubeconfig, fix...).out, check)
}

// shell runs a line as an administrator.
func (u *users) shell(line string) {
	u.Helper()
	command := exec.CommandContext(u.Context(), "bash", "-c", line)
	command.Env = slices.Concat(u.cluster.KubectlCommand(u.Context()).Env, []string{"KUBECONFIG=" + u.cluster.Kubeconfig()})
	out, err := command.CombinedOutput()
	require.NoError(u, err, "%s\n%s", line, out)
}
