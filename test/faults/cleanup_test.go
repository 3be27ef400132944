package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// clear takes all that the seed has made away, the nodes first or the templates,
// and sees that the sidecar leaves nothing over.
func (r *run) clear(ctx context.Context, nodesFirst bool) error {
	steps := []func(ctx context.Context) error{r.world.deleteNodes, r.world.emptyConfiguration}
	if !nodesFirst {
		steps[0], steps[1] = steps[1], steps[0]
	}
	if err := persist(ctx, r.world.createCollected); err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	for _, step := range append(steps, r.load.removeDisks().do, r.world.deleteJobs, r.world.deletePods, r.world.deleteLeases, r.world.deleteEvents) {
		if err := persist(ctx, step); err != nil {
			return fmt.Errorf("clear: %w", err)
		}
	}
	err := r.vanish(ctx)
	processes, logs := r.world.takeAll()
	for _, process := range processes {
		err = errors.Join(err, process.Stop())
	}
	for _, log := range logs {
		err = errors.Join(err, panics(log))
	}
	return err
}

// renew starts those anew who look for a lost API server only once a minute by
// then, so that the next seed has its Pods scheduled.
func (w *world) renew(ctx context.Context, disruptions []string) error {
	if !slices.ContainsFunc(disruptions, func(name string) bool { return name == "apiserver" || name == "etcd" || name == "compaction" }) {
		return nil
	}
	var errs []error
	for _, component := range others {
		errs = append(errs, w.restart(ctx, 0, component))
	}
	return errors.Join(errs...)
}

var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

func (c clients) deleteNodes(ctx context.Context) error {
	return c.client.CoreV1().Nodes().DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// emptyConfiguration has no document left but those of the file.
func (c clients) emptyConfiguration(ctx context.Context) error {
	for _, kind := range []string{kindTemplate, kindConfiguration} {
		if err := c.objects(kind).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return c.replaceConfigMap(ctx, map[string]string{"configuration": configuration, "templates": ""})
}

// deleteJobs has no Job make Pods any more.
func (c clients) deleteJobs(ctx context.Context) error {
	now := atOnce
	now.PropagationPolicy = new(metav1.DeletePropagationBackground)
	return c.client.BatchV1().Jobs(namespace).DeleteCollection(ctx, now, metav1.ListOptions{})
}

// deleteEvents has the next seed list its own.
func (c clients) deleteEvents(ctx context.Context) error {
	return c.client.CoreV1().Events(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// deleteLeases leaves no leader to wait for.
func (c clients) deleteLeases(ctx context.Context) error {
	leases := c.client.CoordinationV1()
	if err := leases.Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	return leases.Leases(electionNamespace).Delete(ctx, electionLease, metav1.DeleteOptions{})
}

func (c clients) deletePods(ctx context.Context) error {
	if err := c.client.CoreV1().Pods(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	return c.client.ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// collected is a Node, and the slice of it that no sidecar knows of. The garbage collector takes the
// slice away as it does those of other nodes.
const collected = "collected"

// mostIdle is how long the garbage collector may be idle. It asks a server that it has lost once a minute.
const mostIdle = 2 * time.Minute

// createCollected makes something that only the garbage collector takes away, once all nodes are deleted.
func (c clients) createCollected(ctx context.Context) error {
	node, err := c.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: collected}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = c.client.CoreV1().Nodes().Get(ctx, collected, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("create node %s: %w", collected, err)
	}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: collected, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: collected, UID: node.UID}}},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "collected.example.com", NodeName: new(collected), Pool: resourcev1.ResourcePool{Name: collected, ResourceSliceCount: 1},
		},
	}
	if _, err := c.client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create slice %s: %w", collected, err)
	}
	return nil
}

// vanish waits until nothing is left. A garbage collector that has lost the API server, or a kind
// that it watches, may be idle for longer than a sidecar: the time counts from when it works.
func (r *run) vanish(ctx context.Context) error {
	deadline := time.Now().Add(r.within)
	left := ""
	for started := time.Now(); time.Now().Before(deadline); {
		state, err := r.look(ctx)
		isCollected := func(slice resourcev1.ResourceSlice) bool { return slice.Name == collected }
		if err == nil && slices.ContainsFunc(state.slices, isCollected) && time.Since(started) < mostIdle {
			deadline = time.Now().Add(r.within)
		}
		switch {
		case err != nil:
			left = err.Error()
		case len(state.slices)+len(state.pods)+len(state.claims)+len(state.nodes) == 0:
			return nil
		default:
			left = fmt.Sprintf("%d slices, %d pods, %d claims, %d nodes", len(state.slices), len(state.pods), len(state.claims), len(state.nodes))
			for i := range state.slices {
				left += "; slice " + state.slices[i].Name
			}
			r.world.deleteStripped(ctx, state)
			if len(state.pods)+len(state.claims) > 0 {
				_ = r.world.deletePods(ctx)
			}
			if time.Until(deadline) < r.within-patience {
				r.world.release(ctx, state)
			}
		}
		sleep(ctx, lookAgain)
	}
	return fmt.Errorf("%s after all was deleted there are left: %s", r.within, left)
}

// deleteStripped deletes the slices that are nobody's: the workload has removed their owner, and
// their label as well, or they are not to be told from somebody else's.
func (c clients) deleteStripped(ctx context.Context, s *state) {
	for i := range s.slices {
		if slice := &s.slices[i]; len(slice.Labels)+len(slice.OwnerReferences) == 0 || s.nobodys(s.slices[i:i+1]) {
			_ = c.client.ResourceV1().ResourceSlices().Delete(ctx, slice.Name, metav1.DeleteOptions{})
		}
	}
}

// release lets claims go that wait for the claim controller, which after a restart
// of the API server may take minutes. Those that show a device are the sidecar's
// to clear, and stay.
func (c clients) release(ctx context.Context, s *state) {
	for i := range s.claims {
		if len(s.claims[i].Status.Devices) == 0 && len(s.pods) == 0 {
			_, _ = c.client.ResourceV1().ResourceClaims(namespace).Patch(ctx, s.claims[i].Name, types.MergePatchType,
				[]byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		}
	}
}
