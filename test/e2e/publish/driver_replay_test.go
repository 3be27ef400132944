package publish

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// wipeDelay is how long a kubelet keeps the slices of a driver without a connection.
const wipeDelay = 30 * time.Second

// replay goes through a history, and notes what must not be.
type replay struct {
	nodes map[string]*driverNode
	pools map[string]pool
	// deletions are when slices of a name were deleted, by the audit log.
	deletions map[string][]time.Time
	wrong     []string

	// longest is how long a node had no Pod, latest how long after its Pod was Ready a pool was
	// complete as a client saw it, and wiped how many pools were deleted.
	longest, latest time.Duration
	wiped           int
}

// driverNode is what is known of the driver on a node.
type driverNode struct {
	// version is that of the last Pod that was Ready, and since when it was.
	version string
	since   time.Time
	// lost is when the plugin in that Pod was lost, or zero while it runs.
	lost time.Time
	// wiping reports whether the slices are being deleted, one after the other. A Pod that is
	// Ready meanwhile does not stop that.
	wiping bool
	// size is how many devices a complete pool has.
	size int
}

func (r *replay) node(name string) *driverNode {
	if r.nodes[name] == nil {
		r.nodes[name] = &driverNode{}
	}
	return r.nodes[name]
}

func (r *replay) fail(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *replay) pod(kind watch.EventType, pod *corev1.Pod) {
	node := r.node(pod.Spec.NodeName)
	if lost := lostAt(pod); kind == watch.Deleted || !lost.IsZero() {
		if node.lost.IsZero() && versionOf(pod) == node.version {
			node.lost = lost
		}
		return
	}
	since := readySince(pod)
	if since == nil {
		return
	}
	if !node.lost.IsZero() {
		r.longest = max(r.longest, since.Sub(node.lost))
	}
	node.version, node.since, node.lost = versionOf(pod), *since, time.Time{}
}

func (r *replay) slice(m moment, slice *resourcev1.ResourceSlice) {
	name := *slice.Spec.NodeName
	node, before := r.node(name), len(r.pools[name].complete())
	pool := see(r.pools, m.Type, slice)
	if m.Type == watch.Deleted {
		r.deleted(node, slice, before > 0)
	} else {
		r.written(node, slice)
	}
	devices := pool.complete()
	if len(devices) == 0 {
		return
	}
	node.size = max(node.size, len(devices))
	if versions := versionsOf(devices); len(versions) > 1 || len(devices) < node.size {
		r.fail("the pool of node %s is complete with %d devices of %v, which is not all of one version", name, len(devices), versions)
	}
	if m.Type != watch.Deleted {
		r.latest = max(r.latest, m.at.Sub(node.since))
	}
}

// written judges what a slice is written with.
func (r *replay) written(node *driverNode, slice *resourcev1.ResourceSlice) {
	node.wiping = false
	if versions := versionsOf(slice.Spec.Devices); !node.lost.IsZero() || !slices.Equal(versions, []string{node.version}) {
		r.fail("slice %s was written with devices of %v, and the last Pod that was Ready on node %s is of %q and was lost at %q", slice.Name, versions, *slice.Spec.NodeName, node.version, node.lost)
	}
}

// deleted judges a deletion by its time.
func (r *replay) deleted(node *driverNode, slice *resourcev1.ResourceSlice, wasComplete bool) {
	times := r.deletions[slice.Name]
	if len(times) == 0 {
		r.fail("slice %s went, and the audit log does not say when", slice.Name)
		return
	}
	r.deletions[slice.Name] = times[1:]
	if !node.wiping && (node.lost.IsZero() || times[0].Before(node.lost.Add(wipeDelay))) {
		r.fail("slice %s of node %s was deleted at %s, and the plugin was lost at %q", slice.Name, *slice.Spec.NodeName, times[0], node.lost)
	}
	node.wiping = true
	if wasComplete {
		r.wiped++
	}
}

// lostAt is when the plugin in a Pod ended or was told to, or zero.
func lostAt(pod *corev1.Pod) time.Time {
	var lost time.Time
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Terminated != nil {
			lost = container.State.Terminated.FinishedAt.Time
		}
	}
	if deleted := pod.DeletionTimestamp; deleted != nil {
		told := deleted.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
		if lost.IsZero() || told.Before(lost) {
			lost = told
		}
	}
	return lost
}

// readySince is since when a Pod is Ready, or nil.
func readySince(pod *corev1.Pod) *time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return &condition.LastTransitionTime.Time
		}
	}
	return nil
}

func versionOf(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}
