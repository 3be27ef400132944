package publish

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// history is all that happens to the Pods and the slices of a driver. The cluster must have
// an audit log.
type history struct {
	h    *harness.H
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	moments []moment
	// pools are the slices of each node, and pods its driver Pods, as they were seen last.
	pools map[string]pool
	pods  map[string]*corev1.Pod
}

// moment is an event of a watch. The revision orders those of both watches.
type moment struct {
	watch.Event

	revision uint64
	at       time.Time
}

// record begins a history before there is anything of the release.
func record(r release) *history {
	r.h.Helper()
	ctx, stop := context.WithCancel(r.h.Context())
	s := &history{h: r.h, stop: stop, pools: map[string]pool{}, pods: map[string]*corev1.Pod{}}
	r.h.Cleanup(s.end)
	nodes, err := r.h.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(r.h, err)
	s.follow(ctx, nodes.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return r.h.Client.CoreV1().Pods(r.name).Watch(ctx, o)
	})
	s.follow(ctx, nodes.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = "spec.driver=" + r.driver
		return r.h.Client.ResourceV1().ResourceSlices().Watch(ctx, o)
	})
	return s
}

func (s *history) follow(ctx context.Context, from string, open cache.WatchFuncWithContext) {
	s.h.Helper()
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{WatchFuncWithContext: open})
	require.NoError(s.h, err)
	s.done.Go(func() {
		for event := range stream.ResultChan() {
			s.note(event)
		}
	})
}

func (s *history) end() {
	s.stop()
	s.done.Wait()
}

func (s *history) note(event watch.Event) {
	object, ok := event.Object.(metav1.Object)
	if !ok {
		return
	}
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moments = append(s.moments, moment{event, revision, time.Now()})
	switch object := event.Object.(type) {
	case *resourcev1.ResourceSlice:
		see(s.pools, event.Type, object)
	case *corev1.Pod:
		s.pods[object.Name] = object
		if event.Type == watch.Deleted {
			delete(s.pods, object.Name)
		}
	}
}

// wait waits until that many nodes have a complete pool of a version and a Pod of it that is
// Ready, and no other node has a slice.
func (s *history) wait(version string, nodes int) {
	s.h.Helper()
	s.h.Eventually(harness.Patience+time.Duration(nodes)*time.Second, func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		var pools, others, pods int
		for _, pool := range s.pools {
			switch {
			case slices.Equal(pool.versions(), []string{version}):
				pools++
			case len(pool) > 0:
				others++
			}
		}
		for _, pod := range s.pods {
			if pod.DeletionTimestamp == nil && readySince(pod) != nil && versionOf(pod) == version {
				pods++
			}
		}
		if pools == nodes && pods == nodes && others == 0 {
			return ""
		}
		return fmt.Sprintf("%d pools and %d Pods that are Ready are of %s, want %d; there are %d other pools", pools, pods, version, nodes, others)
	})
}

// check ends the history, goes through it in its order, and tells how long nodes had no Pod.
func (s *history) check() {
	s.h.Helper()
	s.end()
	slices.SortStableFunc(s.moments, func(a, b moment) int { return cmp.Compare(a.revision, b.revision) })
	r := &replay{nodes: map[string]*driverNode{}, pools: map[string]pool{}, deletions: map[string][]time.Time{}}
	for _, event := range s.h.Audited(func(e *cluster.AuditEvent) bool {
		return e.Verb == "delete" && e.ObjectRef.Resource == "resourceslices"
	}) {
		name := event.ObjectRef.Name
		r.deletions[name] = append(r.deletions[name], event.RequestReceivedTimestamp)
	}
	for _, m := range s.moments {
		switch object := m.Object.(type) {
		case *corev1.Pod:
			r.pod(m.Type, object)
		case *resourcev1.ResourceSlice:
			r.slice(m, object)
		}
	}
	require.Empty(s.h, r.wrong)
	s.h.Logf("%d events; nodes were without a driver Pod for at most %s; %d pools were wiped; pools were complete at most %s after their Pods were Ready",
		len(s.moments), r.longest, r.wiped, r.latest.Round(time.Millisecond))
}

// pool are the slices of a node by name.
type pool map[string]*resourcev1.ResourceSlice

func see(pools map[string]pool, kind watch.EventType, slice *resourcev1.ResourceSlice) pool {
	of := pools[*slice.Spec.NodeName]
	if of == nil {
		of = pool{}
		pools[*slice.Spec.NodeName] = of
	}
	if kind == watch.Deleted {
		delete(of, slice.Name)
	} else {
		of[slice.Name] = slice
	}
	return of
}

// complete are the devices of the newest generation, or none where that is not complete.
func (p pool) complete() []resourcev1.Device {
	var all []resourcev1.Device
	for _, slice := range harness.Newest(p) {
		all = append(all, slice.Spec.Devices...)
	}
	return all
}

// versions are those of the devices, where the pool is complete.
func (p pool) versions() []string { return versionsOf(p.complete()) }

func versionsOf(devices []resourcev1.Device) []string {
	var all []string
	for _, device := range devices {
		all = append(all, *device.Attributes["version"].StringValue)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
