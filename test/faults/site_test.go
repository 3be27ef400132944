package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// site is what features are built with: the world, in which nothing else is.
type site struct {
	*world
	run    *run
	random *rand.Rand
	// timing is a file that has retries be quick, and nothing else.
	timing string
	// fed is how much memory a sidecar had that was killed for it.
	fed atomic.Int64
	// dirs are folders to be removed.
	dirs []string
	// ends end what runs beside the sidecars.
	ends []func()
}

func hashOf(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text))
	return sum.Sum64()
}

// makeDir makes a folder with a short path, as sockets need it.
func (s *site) makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "k")
	s.dirs = append(s.dirs, dir)
	return dir, err
}

// newSchedule has the calls of the sidecar in a place fail at times.
func (s *site) newSchedule(number int) *schedule {
	return newSchedule(s.run.result.seed<<8+uint64(number), s.random, faultTime)
}

// faithful has the status of Pods tell that their claims are unprepared.
var faithful = fmt.Sprintf(configurationDocument, "faithful", "podStatus: "+string(v1alpha1.PodStatusFaithful))

// writeConfiguration writes a file for sidecars to start with.
func (s *site) writeConfiguration(all templates) (string, error) {
	dir, err := s.makeDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "configuration.yaml")
	return path, os.WriteFile(path, []byte(timing+faithful+all.yaml()), 0o600)
}

// start starts a sidecar in a place, and waits until it is ready.
func (s *site) start(ctx context.Context, number int, arguments ...string) error {
	process, err := s.launchWith(number, arguments...)
	if err != nil {
		return err
	}
	return process.WaitReady(ctx)
}

// startAgain kills the only sidecar, and starts it again.
func (s *site) startAgain(ctx context.Context, arguments ...string) error {
	if err := s.all[0].process.Kill(); err != nil {
		return err
	}
	return s.start(ctx, 0, arguments...)
}

// addNode creates a node.
func (s *site) addNode(ctx context.Context, name string, labels map[string]string) error {
	return persist(ctx, func(ctx context.Context) error { return s.createNode(ctx, name, labels) })
}

// device is one of a pool.
type device struct{ driver, pool, name string }

// allocate makes a Pod on its node with a claim that has devices, in the scheduler's place: it
// is bound when its claim is allocated, so that nothing is wrong with it in between. Any node
// reaches the devices.
func (c clients) allocate(ctx context.Context, pod *corev1.Pod, devices ...device) error {
	return c.allocateOn(ctx, nil, pod, devices...)
}

// allocateOn is allocate of devices that some nodes reach.
func (c clients) allocateOn(ctx context.Context, nodes *corev1.NodeSelector, pod *corev1.Pod, devices ...device) error {
	pods, claims := c.client.CoreV1().Pods(namespace), c.client.ResourceV1().ResourceClaims(namespace)
	name := *pod.Spec.ResourceClaims[0].ResourceClaimName
	claim, err := claims.Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec([]string{"gpu"})}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim: %w", err)
	}
	unbound := pod.DeepCopy()
	unbound.Spec.NodeName, unbound.Spec.SchedulerName = "", "faults"
	made, err := pods.Create(ctx, unbound, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	allocation := &resourcev1.AllocationResult{NodeSelector: nodes}
	for _, d := range devices {
		allocation.Devices.Results = append(allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: d.driver, Pool: d.pool, Device: d.name,
		})
	}
	claim.Status.Allocation = allocation
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: made.UID}}
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("allocate claim: %w", err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: pod.Spec.NodeName}}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind pod: %w", err)
	}
	return nil
}

// finish has a Pod succeed.
func (s *site) finish(ctx context.Context, pod string) error {
	return persist(ctx, func(ctx context.Context) error {
		_, err := s.client.CoreV1().Pods(namespace).Patch(ctx, pod, types.MergePatchType, []byte(`{"status": {"phase": "Succeeded"}}`), metav1.PatchOptions{}, "status")
		return err
	})
}

// pod reads a Pod, or nil where there is none.
func (s *site) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	list, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// wrongStart says which of some Pods are told to start and are not to be, or the other way
// round.
func (s *site) wrongStart(ctx context.Context, want bool, names ...string) []string {
	var wrong []string
	for _, name := range names {
		switch pod, err := s.pod(ctx, name); {
		case err != nil:
			wrong = append(wrong, err.Error())
		case pod == nil:
			wrong = append(wrong, "pods: pod "+name+" is gone")
		case startable(pod) != want:
			wrong = append(wrong, fmt.Sprintf("pods: pod %s is told to start: %t, want %t", name, !want, want))
		}
	}
	return wrong
}

// told reports whether an event of a sidecar is about any of some objects. About Pods it speaks as
// the kubelet, of which there is no other one.
func (s *site) told(ctx context.Context, objects ...string) (bool, error) {
	list, err := s.client.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return false, fmt.Errorf("list events: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
		isOurs := slices.Contains([]string{"kwok-dra", "kubelet"}, cmp.Or(e.ReportingController, e.Source.Component))
		return isOurs && slices.Contains(objects, e.InvolvedObject.Name)
	}), nil
}

// guardMemory kills a sidecar that takes too much.
func (s *site) guardMemory(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	s.ends = append(s.ends, func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; sleep(ctx, 20*time.Millisecond) {
			for _, process := range s.running() {
				if used, err := process.ResidentMemory(); err == nil && used > mostLiving {
					s.fed.Store(used)
					_ = process.Kill()
				}
			}
		}
	}()
}

// overfed is that a sidecar had to be killed.
func (s *site) overfed() error {
	if used := s.fed.Load(); used > 0 {
		return fmt.Errorf("memory: a sidecar took %d MiB and was killed", used>>20)
	}
	return nil
}

// endsWithin ends a process as a user does, and kills it where it does not end.
func endsWithin(process *sidecar.Process, limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- process.Stop() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(limit):
		return errors.Join(fmt.Errorf("a sidecar has not ended %s after it was told to", limit), process.Kill(), <-ended)
	}
}

// clear leaves an empty cluster.
func (s *site) clear(ctx context.Context) error {
	var errs []error
	s.disturb(nil)
	processes, logs := s.takeAll()
	for _, process := range processes {
		errs = append(errs, endsWithin(process, s.run.within))
	}
	for _, log := range logs {
		errs = append(errs, panics(log))
	}
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	for _, dir := range s.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(append(errs, s.empty(ctx))...)
}

// empty deletes all that there is, without a sidecar.
func (s *site) empty(ctx context.Context) error {
	for _, step := range []func(ctx context.Context) error{
		s.emptyConfiguration, s.deleteNodes, s.deletePods, s.deleteLeases, s.deleteEvents, s.deleteNodeEvents, s.deleteClasses, s.deleteSlices,
	} {
		if err := persist(ctx, step); err != nil {
			return fmt.Errorf("clear: %w", err)
		}
	}
	started := time.Now()
	return await(ctx, "something is left", func(ctx context.Context) (bool, error) {
		there, err := s.list(ctx)
		if err != nil {
			return false, err
		}
		if len(there.slices)+len(there.pods)+len(there.claims)+len(there.nodes) == 0 {
			return true, nil
		}
		err = errors.Join(s.deleteSlices(ctx), s.deletePods(ctx), s.revive(ctx))
		if time.Since(started) > patience {
			s.release(ctx, &state{found: there})
		}
		return false, err
	})
}

// deleteSlices deletes all slices, as nobody else will.
func (c clients) deleteSlices(ctx context.Context) error {
	return c.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}

// deleteClasses deletes the DeviceClasses that sidecars have made.
func (c clients) deleteClasses(ctx context.Context) error {
	return c.client.ResourceV1().DeviceClasses().DeleteCollection(ctx, atOnce, metav1.ListOptions{LabelSelector: managedBy})
}

// deleteNodeEvents deletes the events of what has no namespace.
func (c clients) deleteNodeEvents(ctx context.Context) error {
	return c.client.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, atOnce, metav1.ListOptions{})
}
