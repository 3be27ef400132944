package faults

import (
	"context"
	"encoding/json"
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
	world  *world
	prefix string
	random *rand.Rand
	all    templates
	pods   int
}

// slicesOfFleet is how many slices a change of templates may write.
const slicesOfFleet = 3 * nodeCount

// plan draws all operations: the fleet comes, then this and that, and in the end
// the configuration is one that can be followed.
func (l *workload) plan() []operation {
	planned := []operation{l.configure()}
	for i := range nodeCount * 3 / 4 {
		planned = append(planned, l.createNode(i))
	}
	for range operations {
		next := l.draw()
		next.pause = time.Duration(l.random.Int64N(int64(90 * time.Millisecond)))
		planned = append(planned, next)
	}
	return append(planned, l.configure())
}

// draw chooses an operation. Those of Pods are common, since most Pods come once.
func (l *workload) draw() operation {
	node := l.random.IntN(nodeCount)
	choices := []struct {
		weight int
		make   func() operation
	}{
		{podCount / 2, l.createPods},
		{4, l.deletePod},
		{3, l.finishPod},
		{3, l.unholdPods},
		{5, func() operation { return l.createNode(node) }},
		{3, func() operation { return l.deleteNode(node) }},
		{3, func() operation { return l.recreateNode(node) }},
		{6, func() operation { return l.labelNode(node) }},
		{6, func() operation { return l.taintDevices(node) }},
		{5, l.changeTemplate},
		{1, l.breakTemplates},
		{1, l.removeConfigMap},
		{5, func() operation { return l.spoilSlice(node) }},
	}
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

func (l *workload) nodeName(i int) string { return fmt.Sprintf("%s-node-%d", l.prefix, i) }

func (l *workload) createNode(i int) operation {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        l.nodeName(i),
		Labels:      map[string]string{kindLabel: pick(l.random, "a", "b", "c"), "kubernetes.io/hostname": l.nodeName(i)},
		Annotations: map[string]string{fakeAnnotation: "fake"},
	}}
	return operation{"create " + node.Name, 4, 0, func(ctx context.Context) error {
		_, err := l.world.client.CoreV1().Nodes().Create(ctx, node.DeepCopy(), metav1.CreateOptions{})
		return err
	}}
}

func (l *workload) deleteNode(i int) operation {
	return operation{"delete " + l.nodeName(i), 4, 0, func(ctx context.Context) error {
		return l.world.client.CoreV1().Nodes().Delete(ctx, l.nodeName(i), metav1.DeleteOptions{})
	}}
}

func (l *workload) recreateNode(i int) operation {
	gone, back := l.deleteNode(i), l.createNode(i)
	return operation{"recreate " + l.nodeName(i), 8, 0, func(ctx context.Context) error {
		if err := l.world.persist(ctx, gone.do); err != nil {
			return err
		}
		return back.do(ctx)
	}}
}

// labelNode changes a label that templates or the configuration go by.
func (l *workload) labelNode(i int) operation {
	key := pick(l.random, kindLabel, tierLabel, rackLabel, retiredLabel)
	var value any
	switch key {
	case kindLabel:
		value = pick(l.random, "a", "b", "c", "d")
	case tierLabel:
		value = pick[any](l.random, "gold", nil)
	case rackLabel:
		value = pick[any](l.random, "r1", "r2", nil)
	case retiredLabel:
		value = pick[any](l.random, "true", nil, nil)
	}
	return l.patchNode(fmt.Sprintf("label %s %s=%v", l.nodeName(i), key, value), i, map[string]any{"labels": map[string]any{key: value}})
}

// taintDevices writes an annotation, at times one that cannot be followed.
func (l *workload) taintDevices(i int) operation {
	var value any
	switch l.random.IntN(6) {
	case 0: // taken away
	case 1:
		value = gibberish + strings.Repeat("::,", l.random.IntN(100)) + "\u2028=💥"
	default:
		effects := []string{"NoSchedule", "NoSchedule", "NoSchedule", "None", "NoExecute"}
		var entries []string
		for n := range 1 + l.random.IntN(3) {
			target := pick(l.random, "gpu-0", "gpu-1", gpuDriver+"/gpu-2", "nic-0", nicDriver+"/nic-1", "gold-3", "nosuch-7")
			entries = append(entries, fmt.Sprintf("%s:example.com/fault-%d=%d:%s", target, n, l.random.IntN(100), pick(l.random, effects...)))
		}
		value = strings.Join(entries, ",")
	}
	return l.patchNode("taint devices of "+l.nodeName(i), i, map[string]any{"annotations": map[string]any{taintAnnotation: value}})
}

func (l *workload) patchNode(name string, i int, metadata map[string]any) operation {
	return operation{name, 6, 0, func(ctx context.Context) error {
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		_, err = l.world.client.CoreV1().Nodes().Patch(ctx, l.nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}}
}

// createPods creates a few Pods with claims from a template, or that share one.
func (l *workload) createPods() operation {
	var pods []*corev1.Pod
	for range min(2, podCount-l.pods) {
		pods = append(pods, l.newPod())
	}
	return operation{fmt.Sprintf("create %d pods", len(pods)), 4 * len(pods), 0, func(ctx context.Context) error {
		for _, pod := range pods {
			if err := l.world.persist(ctx, func(ctx context.Context) error { return l.createPod(ctx, pod) }); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (l *workload) newPod() *corev1.Pod {
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
	claim := corev1.PodResourceClaim{Name: "claim"}
	if l.random.IntN(4) == 0 {
		claim.ResourceClaimName = new(fmt.Sprintf("%s-shared-%d", l.prefix, l.random.IntN(3)))
	} else {
		claim.ResourceClaimTemplateName = new(pick(l.random, "gpu", "gpu", "gpu", "both", "fabric"))
	}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{claim}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: claim.Name}}
	return pod
}

// createPod creates a Pod, and first the claim that it shares.
func (l *workload) createPod(ctx context.Context, pod *corev1.Pod) error {
	if name := pod.Spec.ResourceClaims[0].ResourceClaimName; name != nil {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: *name}, Spec: claimSpec([]string{"gpu"})}
		if err := l.world.persist(ctx, func(ctx context.Context) error {
			_, err := l.world.client.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	_, err := l.world.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func (l *workload) podName() string {
	return fmt.Sprintf("%s-pod-%d", l.prefix, l.random.IntN(max(1, l.pods)))
}

func (l *workload) deletePod() operation {
	name, grace := l.podName(), l.random.Int64N(2)
	return operation{"delete " + name, 3, 0, func(ctx context.Context) error {
		return l.world.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	}}
}

// finishPod has a Pod that was bound succeed.
func (l *workload) finishPod() operation {
	return l.patchPod("finish", `{"status": {"phase": "Succeeded"}}`, "status")
}

func (l *workload) unholdPods() operation {
	return l.patchPod("unhold", fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, holdLabel))
}

func (l *workload) patchPod(what, patch string, subresources ...string) operation {
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
func (l *workload) spoilSlice(i int) operation {
	patch := pick(l.random, "",
		`[{"op": "replace", "path": "/spec/devices/0/attributes/revision/int", "value": 7777}]`,
		`[{"op": "remove", "path": "/metadata/ownerReferences"}]`,
		`[{"op": "remove", "path": "/metadata/labels"}]`,
		`[{"op": "remove", "path": "/spec/devices/0"}]`)
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
