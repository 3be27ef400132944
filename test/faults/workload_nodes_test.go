package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (l *nodeLoad) nodeName(i int) string { return fmt.Sprintf("%s-node-%d", l.prefix, i) }

// createNode creates a node that the sidecars act for, as a rule.
func (l *nodeLoad) createNode(i int) operation {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        l.nodeName(i),
		Labels:      map[string]string{kindLabel: pick(l.random, "a", "b", "c"), "kubernetes.io/hostname": l.nodeName(i)},
		Annotations: map[string]string{fakeAnnotation: "fake"},
	}}
	if l.random.IntN(8) > 0 {
		node.Labels[chosenKey], node.Annotations[chosenKey] = chosenValue, chosenValue
	} else {
		if len(l.past(i).kinds) > 0 {
			node.Annotations[leftAnnotation] = "true" // the one of that name before was selected
		}
		l.past(i).unsteady = true
	}
	l.past(i).kinds = append(l.past(i).kinds, node.Labels[kindLabel])
	lease := l.newLease(i)
	return operation{"create " + node.Name, 4, 0, func(ctx context.Context) error {
		if err := persist(ctx, func(ctx context.Context) error {
			_, err := l.world.client.CoreV1().Nodes().Create(ctx, node.DeepCopy(), metav1.CreateOptions{})
			return err
		}); err != nil || lease == nil {
			return err
		}
		_, err := l.world.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
		return err
	}}
}

// newLease is the lease of a node that the kwok in one of the Pods takes, or nil
// where nobody looks at leases.
func (l *nodeLoad) newLease(i int) *coordinationv1.Lease {
	if l.setup.mode != modeLease {
		return nil
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.nodeName(i)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(l.kwok()), LeaseDurationSeconds: new(int32(40))},
	}
}

// kwok is the kwok in one of the Pods, by the name that it has in leases.
func (l *nodeLoad) kwok() string { return pick(l.random, l.setup.hosts()...) + "_1" }

// moveLease has the kwok of another Pod take the lease of a node.
func (l *nodeLoad) moveLease(i int) operation {
	to := l.kwok()
	return operation{fmt.Sprintf("move %s to %s", l.nodeName(i), to), 4, 0, func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec": {"holderIdentity": %q}}`, to)
		_, err := l.world.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, l.nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}}
}

// deleteNode deletes a node, and its lease, as the garbage collector does.
func (l *nodeLoad) deleteNode(i int) operation {
	l.past(i).unsteady = true
	return operation{"delete " + l.nodeName(i), 4, 0, func(ctx context.Context) error {
		if err := persist(ctx, func(ctx context.Context) error {
			return l.world.client.CoreV1().Nodes().Delete(ctx, l.nodeName(i), metav1.DeleteOptions{})
		}); err != nil {
			return err
		}
		return l.world.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, l.nodeName(i), metav1.DeleteOptions{})
	}}
}

func (l *nodeLoad) recreateNode(i int) operation {
	gone, back := l.deleteNode(i), l.createNode(i)
	return operation{"recreate " + l.nodeName(i), 8, 0, func(ctx context.Context) error {
		if err := persist(ctx, gone.do); err != nil {
			return err
		}
		return back.do(ctx)
	}}
}

// selectNode has a node enter the selection, or leave it.
func (l *nodeLoad) selectNode(i int) operation {
	enter := l.random.IntN(2) == 0
	l.past(i).unsteady = true
	return l.patchNode(fmt.Sprintf("select %s: %t", l.nodeName(i), enter), i, l.setup.selection.patch(enter))
}

// labelNode changes a label that templates or the configuration go by.
func (l *nodeLoad) labelNode(i int) operation {
	key := pick(l.random, kindLabel, tierLabel, rackLabel, retiredLabel)
	var value any
	switch key {
	case kindLabel:
		kind := pick(l.random, "a", "b", "c", "d")
		l.past(i).kinds = append(l.past(i).kinds, kind)
		value = kind
	case tierLabel:
		value = pick[any](l.random, "gold", nil)
	case rackLabel:
		value = pick[any](l.random, "r1", "r2", nil)
	case retiredLabel:
		value = pick[any](l.random, "true", nil, nil)
		l.past(i).unsteady = true
	}
	return l.patchNode(fmt.Sprintf("label %s %s=%v", l.nodeName(i), key, value), i, map[string]any{"labels": map[string]any{key: value}})
}

// taintDevices writes an annotation, at times one that cannot be followed.
func (l *nodeLoad) taintDevices(i int) operation {
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

func (l *nodeLoad) patchNode(name string, i int, metadata map[string]any) operation {
	return operation{name, 6, 0, func(ctx context.Context) error {
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return err
		}
		_, err = l.world.client.CoreV1().Nodes().Patch(ctx, l.nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}}
}
