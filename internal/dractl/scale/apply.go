package scale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
)

const (
	// workers is how many requests are under way, as in kwok-dra.
	workers = 16
	// fieldManager is that of the objects.
	fieldManager = cli.Name
	// pollInterval is how often the progress of the fleet is counted.
	pollInterval = 200 * time.Millisecond
)

// applier makes the cluster as the plan says.
type applier struct {
	*world

	streams cli.Streams
	// terminal is nil where standard error is none.
	terminal *screen.Screen
	// typed is the target as the user has typed it.
	typed   string
	plan    *target.Plan
	seen    *target.Observed
	timeout time.Duration
	// made counts the nodes that are made now.
	made atomic.Int64
}

// reachCount makes or removes nodes until there are as many as wanted.
func (a *applier) reachCount(ctx context.Context, of *target.Target, want int) (err error) {
	if len(a.plan.RemoveNodes) > 0 {
		if err := a.makeObjects(ctx); err != nil { // what is refused is so before anything is deleted
			return err
		}
		if err := a.removeNodes(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped: %d of %d nodes are made: the same command goes on from there", len(a.plan.Have)+int(a.made.Load()), want)
		}
	}()
	drivers := map[string]bool{}
	for i := range of.Pools {
		drivers[of.Pools[i].Driver] = true
	}
	pools := want * len(of.Pools)
	// Without a wait, nothing needs a watch, which costs as much as a third of the writing.
	count := func() counts { return counts{nodes: len(a.plan.Have) + int(a.made.Load())} }
	line := func() string { return fmt.Sprintf("%d of %d nodes made", count().nodes, want) }
	share := func() float64 { return float64(count().nodes) / float64(want) }
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if a.timeout > 0 {
		watched, err := startWatch(watching, stop, a.client, of.Name, a.timeout)
		if err != nil {
			return err
		}
		count = func() counts { return watched.countProgress(drivers) }
		line = func() string { return progressLine(count(), want, pools) }
		share = func() float64 {
			c := count()
			return float64(c.nodes+c.ready+c.pools) / float64(2*want+pools)
		}
	}
	if err := a.makeObjects(ctx); err != nil {
		return err
	}
	p := a.startProgress(line, share)
	err = a.makeNodes(watching)
	if err == nil && a.timeout > 0 {
		err = a.awaitComplete(watching, count, want, pools)
	}
	p.stop()
	if err != nil || ctx.Err() != nil {
		return err
	}
	_, err = fmt.Fprintf(a.streams.Out, "%s: %s\n", of.Name, line())
	return err
}

// makeObjects makes the templates and DeviceClasses that are missing.
func (a *applier) makeObjects(ctx context.Context) error {
	for _, object := range a.plan.Make {
		_, err := a.objects.Resource(resourceOf(object)).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager})
		switch {
		case apierrors.IsConflict(err):
			return fmt.Errorf("%s %s was changed by others, and stays as it is (%w): to undo their changes, "+
				"kwok-dractl generate %s --nodes 0 | kubectl apply --server-side --force-conflicts -f -", object.GetKind(), object.GetName(), err, a.typed)
		case err != nil:
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (a *applier) makeNodes(ctx context.Context) error {
	return inParallel(ctx, len(a.plan.Nodes), func(i int) error {
		node := a.plan.Nodes[i]
		_, err := a.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("make node %s: someone else has just made it: run the same command again", node.Name)
		case err != nil:
			return fmt.Errorf("make node %s: %w", node.Name, err)
		}
		a.made.Add(1)
		return nil
	})
}

// awaitComplete waits until all nodes are Ready and have their pools, as long as there is progress.
func (a *applier) awaitComplete(ctx context.Context, count func() counts, want, pools int) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last, since := counts{}, time.Now()
	for {
		now := count()
		switch {
		case now.ready >= want && now.pools >= pools:
			return nil
		case now != last:
			last, since = now, time.Now()
		case time.Since(since) > a.timeout:
			if now.ready < want {
				return fmt.Errorf("%d of %d nodes are Ready, and no other for %s: is kwok running, with a Stage that makes nodes Ready? kubectl get stages",
					now.ready, want, a.timeout)
			}
			return fmt.Errorf("%d of %d pools are complete, and no other for %s: does kwok-dra run, and read custom resources (--enable-crds)? "+
				"kubectl get resourcepooltemplates -o wide says whether it accepts the templates", now.pools, pools, a.timeout)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// removeTarget removes all of a target.
func (a *applier) removeTarget(ctx context.Context, name string) error {
	if err := a.removeNodes(ctx); err != nil {
		return err
	}
	for _, object := range a.plan.Remove {
		err := a.removeObject(ctx, object)
		if ctx.Err() != nil {
			return errors.New("stopped: all nodes are deleted: the same command goes on from there")
		}
		if err != nil {
			return err
		}
	}
	for _, line := range a.plan.Kept {
		a.streams.Tell("%s\n", line)
	}
	removed := fmt.Sprintf("%d nodes", len(a.plan.RemoveNodes))
	for _, object := range a.plan.Remove {
		removed += fmt.Sprintf(", %s %s", object.GetKind(), object.GetName())
	}
	if len(a.plan.RemoveNodes)+len(a.plan.Remove) == 0 {
		removed = "nothing: there is nothing that scale or generate made for " + name
	}
	_, err := fmt.Fprintf(a.streams.Out, "deleted %s\n", removed)
	return err
}

// removeObject deletes the object that was observed, and none that replaced or changed it.
func (a *applier) removeObject(ctx context.Context, object *unstructured.Unstructured) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	preconditions := &metav1.Preconditions{UID: &uid}
	if resourceOf(object) == classResource { // the status of a template changes all the time
		preconditions.ResourceVersion = &version
	}
	err := a.objects.Resource(resourceOf(object)).Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: preconditions})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// removeNodes deletes nodes, and says what becomes of their Pods.
func (a *applier) removeNodes(ctx context.Context) error {
	nodes := a.plan.RemoveNodes
	if len(nodes) == 0 {
		return nil
	}
	pods, with := 0, 0
	for i := range nodes {
		if on := a.seen.Pods[nodes[i].Name]; on > 0 {
			pods, with = pods+on, with+1
		}
	}
	if pods > 0 {
		a.streams.Tell("%d of the %d nodes to delete have Pods: Kubernetes deletes these %d Pods within about a minute\n", with, len(nodes), pods)
	}
	var done atomic.Int64
	line := func() string { return fmt.Sprintf("%d of %d nodes deleted", done.Load(), len(nodes)) }
	p := a.startProgress(line, func() float64 { return float64(done.Load()) / float64(len(nodes)) })
	err := inParallel(ctx, len(nodes), func(i int) error {
		err := a.client.CoreV1().Nodes().Delete(ctx, nodes[i].Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &nodes[i].UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete node %s: %w", nodes[i].Name, err)
		}
		done.Add(1)
		return nil
	})
	p.stop()
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %s: the same command goes on from there", line())
	}
	return err
}

// inParallel runs f for 0 to count-1 until one of them fails, and returns the first
// failure.
func inParallel(ctx context.Context, count int, f func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for i := worker; i < count && ctx.Err() == nil; i += workers {
				if err := f(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}
