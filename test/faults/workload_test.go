package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The size of a seed's workload.
const (
	nodeCount  = 20
	podCount   = 60
	operations = 70
)

// operation is one step of the workload.
type operation struct {
	name string
	// touches is how many objects of the sidecar's it changes at most.
	touches int
	pause   time.Duration
	do      func(ctx context.Context) error
}

// workload draws operations, and keeps the templates that are in force.
type workload struct {
	maker
	podLoad
	nodeLoad
	configLoad
}

// maker is what operations are made with.
type maker struct {
	world  *world
	prefix string
	random *rand.Rand
}

// podLoad makes the operations on Pods and Jobs.
type podLoad struct {
	maker
	pods int
}

// nodeLoad makes the operations on nodes.
type nodeLoad struct {
	maker
	setup setup
	// pasts are what nodes may have been.
	pasts map[string]*nodePast
}

// configLoad makes the operations on the configuration.
type configLoad struct {
	maker
	all templates
	// history are the templates that may have been in force.
	history []templates
	// ended is when the disks were to go.
	ended time.Time
}

func newWorkload(w *world, random *rand.Rand, seed uint64) *workload {
	m := maker{w, fmt.Sprintf("s%d", seed), random}
	l := &workload{m, podLoad{maker: m}, nodeLoad{maker: m, pasts: map[string]*nodePast{}}, configLoad{maker: m, all: initialTemplates()}}
	l.setup = newSetup(random, l.nodeName(0))
	return l
}

// slicesOfFleet is how many slices a change of templates may write.
const slicesOfFleet = 3 * nodeCount

// plan draws all operations: the fleet comes, then this and that, and in the end
// the configuration is one that can be followed.
func (l *workload) plan() []operation {
	var planned []operation
	for i := range nodeCount * 3 / 4 {
		planned = append(planned, l.createNode(i))
	}
	for range operations {
		next := l.draw()
		next.pause = time.Duration(l.random.Int64N(int64(90 * time.Millisecond)))
		planned = append(planned, next)
	}
	return append(planned, l.removeDisks(), l.configure())
}

// choice is a kind of operation: how common it is, and how one is made.
type choice struct {
	weight int
	make   func() operation
}

// choices are all kinds of operations. Those of Pods are common, since most Pods
// come once.
func (l *workload) choices() []choice {
	node := l.someNode()
	all := []choice{
		{podCount / 2, l.createPods},
		{4, l.deletePod},
		{3, l.finishPod},
		{3, l.editPod},
		{2, l.createJob},
		{2, l.editPodOfJobs},
		{1, l.deletePodOfJobs},
		{3, l.unholdPods},
		{5, func() operation { return l.createNode(node) }},
		{3, func() operation { return l.deleteNode(node) }},
		{3, func() operation { return l.recreateNode(node) }},
		{6, func() operation { return l.labelNode(node) }},
		{6, func() operation { return l.taintDevices(node) }},
		{5, func() operation { return l.spoilSlice(node) }},
	}
	if l.setup.mode == modeLease {
		all = append(all, choice{8, func() operation { return l.moveLease(node) }})
	}
	if l.setup.selection.by != "" {
		all = append(all, choice{6, func() operation { return l.selectNode(node) }})
	}
	return append(all, l.configChoices()...)
}

// someNode is a node by its number. Where the sidecars act for one only, it is
// often that one.
func (l *nodeLoad) someNode() int {
	if l.setup.selection.single != "" && l.random.IntN(2) == 0 {
		return 0
	}
	return l.random.IntN(nodeCount)
}

// draw chooses an operation.
func (l *workload) draw() operation {
	choices := l.choices()
	total := 0
	for _, choice := range choices {
		total += choice.weight
	}
	drawn := l.random.IntN(total)
	for _, choice := range choices {
		if drawn -= choice.weight; drawn < 0 {
			return choice.make()
		}
	}
	return l.createPods()
}

// createPods creates a few Pods with claims from a template, or that share one.
func (l *podLoad) createPods() operation {
	var pods []*corev1.Pod
	for range min(2, podCount-l.pods) {
		pods = append(pods, l.newPod())
	}
	return operation{fmt.Sprintf("create %d pods", len(pods)), 4 * len(pods), 0, func(ctx context.Context) error {
		for _, pod := range pods {
			if err := persist(ctx, func(ctx context.Context) error { return l.createPod(ctx, pod) }); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (l *podLoad) newPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-pod-%d", l.prefix, l.pods), Namespace: namespace},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "c", Image: "busybox"}},
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
		},
	}
	l.pods++
	if l.random.IntN(6) == 0 {
		pod.Labels = map[string]string{holdLabel: "true"}
	}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{l.podClaim(pod.Name)}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: pod.Spec.ResourceClaims[0].Name}}
	return pod
}

// The claims that Pods name, by the class that they ask for and by who uses them:
// Pods on a node share one, or Pods on several nodes, or a Pod has one of its own,
// which remains when it has ended.
const (
	sharedClaim   = "gpu-shared"
	sharedByNodes = "fabric-shared"
	ownClaim      = "gpu-own"
)

func (l *podLoad) podClaim(pod string) corev1.PodResourceClaim {
	claim := corev1.PodResourceClaim{Name: "claim"}
	switch l.random.IntN(8) {
	case 0, 1:
		claim.ResourceClaimName = new(fmt.Sprintf("%s-%s-%d", sharedClaim, l.prefix, l.random.IntN(3)))
	case 2:
		claim.ResourceClaimName = new(fmt.Sprintf("%s-%s-%d", sharedByNodes, l.prefix, l.random.IntN(2)))
	case 3:
		claim.ResourceClaimName = new(fmt.Sprintf("%s-%s", ownClaim, pod))
	default:
		claim.ResourceClaimTemplateName = new(pick(l.random, "gpu", "gpu", "gpu", "both", "fabric"))
	}
	return claim
}

// createPod creates a Pod, and first the claim that it names.
func (l *podLoad) createPod(ctx context.Context, pod *corev1.Pod) error {
	if err := l.createClaim(ctx, pod); err != nil {
		return err
	}
	_, err := l.world.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// createClaim creates the claim that a Pod names, if it names one.
func (l *podLoad) createClaim(ctx context.Context, pod *corev1.Pod) error {
	name := pod.Spec.ResourceClaims[0].ResourceClaimName
	if name == nil {
		return nil
	}
	class, _, _ := strings.Cut(*name, "-")
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: *name}, Spec: claimSpec([]string{class})}
	return persist(ctx, func(ctx context.Context) error {
		_, err := l.world.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
}

func (l *podLoad) podName() string {
	return fmt.Sprintf("%s-pod-%d", l.prefix, l.random.IntN(max(1, l.pods)))
}

func (l *podLoad) deletePod() operation {
	name, grace := l.podName(), l.random.Int64N(2)
	return operation{"delete " + name, 3, 0, func(ctx context.Context) error {
		return l.world.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	}}
}

// finishPod has a Pod that was bound succeed.
func (l *podLoad) finishPod() operation {
	return l.patchPod("finish", `{"status": {"phase": "Succeeded"}}`, "status")
}

func (l *podLoad) unholdPods() operation {
	return l.patchPod("unhold", fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, holdLabel))
}

func (l *podLoad) patchPod(what, patch string, subresources ...string) operation {
	name := l.podName()
	return operation{what + " " + name, 3, 0, func(ctx context.Context) error {
		_, err := l.world.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	}}
}

func pick[T any](random *rand.Rand, from ...T) T {
	return from[random.IntN(len(from))]
}

// spoilSlice edits or deletes a slice of a node by hand.
func (l *nodeLoad) spoilSlice(i int) operation {
	patch := pick(l.random, "",
		`[{"op": "replace", "path": "/spec/devices/0/attributes/revision/int", "value": 7777}]`,
		`[{"op": "remove", "path": "/metadata/ownerReferences"}]`,
		`[{"op": "remove", "path": "/metadata/labels"}]`,
		`[{"op": "remove", "path": "/spec/devices/0"}]`)
	l.past(i).unsteady = true
	return operation{"spoil a slice of " + l.nodeName(i), 3, 0, func(ctx context.Context) error {
		client := l.world.client.ResourceV1().ResourceSlices()
		list, err := client.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + l.nodeName(i)})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		slices.SortFunc(list.Items, func(a, b resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
		if patch == "" {
			return client.Delete(ctx, list.Items[0].Name, metav1.DeleteOptions{})
		}
		_, err = client.Patch(ctx, list.Items[0].Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return ignoreRefused(err)
	}}
}
