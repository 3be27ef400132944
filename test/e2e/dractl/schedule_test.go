package dractl

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/admin"
)

const (
	// caseLabel tells the objects of one case from those of the others.
	caseLabel = "case"
	// namespace has all Pods and claims.
	namespace = "cases"
	// askers wait for the scheduler at the same time. It works on one Pod only.
	askers = 12
	// patience is how long a scheduler takes that will never decide, however busy the
	// machine.
	patience = 5 * time.Minute
	// telling is the least part of the Pods that must fit, and of those that must
	// not, in percent, or the cases prove little.
	telling = 20
)

var seedFlag = flag.Uint64("schedule-seed", 1, "what the random cases of TestScheduleAsTheScheduler are made of")

// TestScheduleAsTheScheduler holds what the command says of Pods against what the
// scheduler does with them.
func TestScheduleAsTheScheduler(t *testing.T) {
	t.Parallel()
	if harness.KubernetesMinor() < 36 {
		t.Skip("the allocator of older releases goes through pools in another order")
	}
	c := cluster.ForTest(t, cluster.Options{
		Disable:   []string{cluster.ControllerManager, cluster.Kwok}, // nothing is to end, or to be taken back
		ExtraArgs: map[string][]string{cluster.Scheduler: {"kube-api-qps=2000", "kube-api-burst=4000"}},
	})
	client, err := admin.NewClient(c.Kubeconfig())
	require.NoError(t, err)
	r := &referee{T: t, client: client}
	r.prepare()
	cases := append(profileCases(t, *seedFlag), randomCases(*seedFlag)...)
	require.GreaterOrEqual(t, len(cases), 200)
	queue := make(chan *scene, len(cases))
	for _, scene := range cases {
		r.publish(scene)
		queue <- scene
	}
	close(queue)
	var group sync.WaitGroup
	for range askers {
		group.Go(func() {
			for scene := range queue {
				if !t.Failed() {
					r.play(scene)
				}
			}
		})
	}
	group.Wait()
	r.lookAgain()
	t.Logf("%d cases: %d Pods fit, %d do not, and %d make the scheduler fail", len(cases), r.fit, r.unfit, r.failed)
	require.Greater(t, r.fit*100, (r.fit+r.unfit)*telling, "too few Pods fit")
	require.Greater(t, r.unfit*100, (r.fit+r.unfit)*telling, "too many Pods fit")
	require.NotZero(t, r.failed)
}

// scene is a case: devices on nodes of their own, and Pods that come one after
// the other.
type scene struct {
	name    string
	nodes   []*corev1.Node
	slices  []*resourcev1.ResourceSlice
	classes []*resourcev1.DeviceClass
	steps   []step
}

// step is a Pod with the claims that come with it.
type step struct {
	pod    *corev1.Pod
	claims []*resourcev1.ResourceClaim
}

// referee compares.
type referee struct {
	*testing.T

	client kubernetes.Interface

	mutex              sync.Mutex
	fit, unfit, failed int
	waiting            []string
}

// prepare makes what the controller manager would.
func (r *referee) prepare() {
	_, err := r.client.CoreV1().Namespaces().Create(r.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"resource.kubernetes.io/admin-access": "true"},
	}}, metav1.CreateOptions{})
	require.NoError(r, err)
	_, err = r.client.CoreV1().ServiceAccounts(namespace).Create(r.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(r, err)
}

// publish makes the nodes and devices of a case.
func (r *referee) publish(s *scene) {
	for i, node := range s.nodes {
		taints, status := node.Spec.Taints, node.Status
		created, err := r.client.CoreV1().Nodes().Create(r.Context(), node, metav1.CreateOptions{})
		require.NoError(r, err)
		created.Spec.Taints = taints // without the one of nodes that are not ready
		created, err = r.client.CoreV1().Nodes().Update(r.Context(), created, metav1.UpdateOptions{})
		require.NoError(r, err)
		created.Status = status
		s.nodes[i], err = r.client.CoreV1().Nodes().UpdateStatus(r.Context(), created, metav1.UpdateOptions{})
		require.NoError(r, err)
	}
	for i, class := range s.classes {
		created, err := r.client.ResourceV1().DeviceClasses().Create(r.Context(), class, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // of another case with the profile
			continue
		}
		require.NoError(r, err)
		s.classes[i] = created
	}
	for i, slice := range s.slices {
		slice.OwnerReferences = nil
		created, err := r.client.ResourceV1().ResourceSlices().Create(r.Context(), slice, metav1.CreateOptions{})
		require.NoError(r, err, "%s: %s", s.name, slice.Name)
		s.slices[i] = created
	}
}

// play has the Pods of a case come, and compares each time what is said with what
// is done.
func (r *referee) play(s *scene) {
	world := &simulator.World{Nodes: s.nodes, Slices: s.slices, Classes: s.classes}
	for _, step := range s.steps {
		for _, claim := range step.claims {
			_, err := r.client.ResourceV1().ResourceClaims(namespace).Create(r.Context(), claim, metav1.CreateOptions{})
			if !r.ok(s, step, err) {
				return
			}
		}
		world.Claims = r.claims(s.name)
		expected := simulator.NewScheduler(world).Schedule(r.Context(), step.pod.DeepCopy())
		created, err := r.client.CoreV1().Pods(namespace).Create(r.Context(), step.pod, metav1.CreateOptions{})
		if !r.ok(s, step, err) {
			return
		}
		pod := r.decided(created.Name, expected.Node != "")
		if (pod.Spec.NodeName != "") != (expected.Node != "") {
			r.Errorf("%s, Pod %s: the scheduler says node %q, %v; the command says node %q, %s", s.name, pod.Name, pod.Spec.NodeName, pod.Status.Conditions, expected.Node, expected.Reason)
			return
		}
		r.tally(pod, expected)
		if pod.Spec.NodeName == "" {
			continue
		}
		if !r.sameDevices(s, world, step, pod) {
			return
		}
		world.Pods = append(world.Pods, pod)
	}
}

// ok says of what could not be created.
func (r *referee) ok(s *scene, step step, err error) bool {
	if err != nil && r.Context().Err() == nil {
		r.Errorf("%s, Pod %s: %v", s.name, step.pod.Name, err)
	}
	return err == nil
}

// decided waits for what the scheduler makes of a Pod. When it says that the Pod
// does not fit where it should, it may not know of all objects yet.
func (r *referee) decided(name string, fits bool) *corev1.Pod {
	deadline := time.Now().Add(patience)
	for pause := 10 * time.Millisecond; ; pause += pause / 4 {
		pod, err := r.client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
		if err != nil {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		refused := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		if pod.Spec.NodeName != "" || refused && !fits || time.Now().After(deadline) {
			return pod
		}
		select {
		case <-r.Context().Done():
		case <-time.After(min(pause, time.Second)):
		}
	}
}

// tally counts. A Pod on which the scheduler fails is deleted: it would be tried
// again, and may fit once others have the device with which it fails.
func (r *referee) tally(pod *corev1.Pod, expected *simulator.Placement) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case pod.Spec.NodeName != "":
		r.fit++
	case expected.Reason == "":
		r.unfit++
		r.leaveWaiting(pod)
	default:
		r.failed++
		r.deletePod(pod)
	}
}

// leaveWaiting leaves a Pod waiting, to look at it again. It deletes one that may fit once others have come.
func (r *referee) leaveWaiting(pod *corev1.Pod) {
	if pod.Spec.Affinity != nil || pod.Spec.TopologySpreadConstraints != nil {
		r.deletePod(pod)
		return
	}
	r.waiting = append(r.waiting, pod.Name)
}

func (r *referee) deletePod(pod *corev1.Pod) {
	if err := r.client.CoreV1().Pods(namespace).Delete(r.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		r.Errorf("delete Pod %s: %v", pod.Name, err)
	}
}

// sameDevices compares the devices on the node that the scheduler has chosen.
func (r *referee) sameDevices(s *scene, world *simulator.World, step step, pod *corev1.Pod) bool {
	only := *world
	only.Nodes = slices.DeleteFunc(slices.Clone(world.Nodes), func(n *corev1.Node) bool { return n.Name != pod.Spec.NodeName })
	placement := simulator.NewScheduler(&only).Schedule(r.Context(), step.pod)
	said := map[string]string{}
	for _, claim := range placement.Claims {
		said[claim.Name] = results(claim)
	}
	same := true
	for _, claim := range r.claims(s.name) {
		if expected, mine := said[claim.Name]; mine && expected != results(claim) {
			same = false
			r.Errorf("%s, Pod %s, claim %s:\nthe scheduler has chosen %s\nthe command says         %s", s.name, pod.Name, claim.Name, results(claim), expected)
		}
	}
	return same
}

// results are the devices of a claim, without the ids of shares.
func results(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return "nothing"
	}
	var all []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		text := result.Request + "=" + result.Driver + "/" + result.Pool + "/" + result.Device
		for _, name := range slices.Sorted(maps.Keys(result.ConsumedCapacity)) {
			consumed := result.ConsumedCapacity[name]
			text += fmt.Sprintf("(%s %s)", name, consumed.String())
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (r *referee) claims(of string) []*resourcev1.ResourceClaim {
	list, err := r.client.ResourceV1().ResourceClaims(namespace).List(r.Context(), metav1.ListOptions{LabelSelector: caseLabel + "=" + of})
	if err != nil {
		r.Error(err)
		return nil
	}
	claims := make([]*resourcev1.ResourceClaim, len(list.Items))
	for i := range list.Items {
		claims[i] = &list.Items[i]
	}
	return claims
}

// lookAgain finds Pods that were refused for want of objects which the scheduler
// had not heard of.
func (r *referee) lookAgain() {
	for _, name := range r.waiting {
		pod, err := r.client.CoreV1().Pods(namespace).Get(r.Context(), name, metav1.GetOptions{})
		require.NoError(r, err)
		require.Empty(r, pod.Spec.NodeName, "Pod %s fits after all", name)
	}
}

// newScenePod makes a Pod for the nodes of a case, with claims by their names.
func newScenePod(of string, index int, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", of, index), Namespace: namespace, Labels: map[string]string{caseLabel: of},
		},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{caseLabel: of}, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	for i, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i), ResourceClaimName: &claim})
	}
	return pod
}
