package kwokdratest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
)

// poll is how often nodes and slices are looked at.
const poll = 50 * time.Millisecond

// wait waits until the nodes are Ready and have their slices.
func (f *fleet) wait(ctx context.Context) error {
	for _, node := range f.options.Nodes {
		missing, err := f.await(ctx, func(ctx context.Context) (string, error) { return f.missing(ctx, node.Name) })
		if err != nil {
			return fmt.Errorf("wait for node %s: %w", node.Name, err)
		}
		if missing != "" {
			return fmt.Errorf("wait for node %s: after %s %s", node.Name, f.options.Timeout, missing)
		}
	}
	return nil
}

// await asks what is missing until it is nothing, or the time is up.
func (f *fleet) await(ctx context.Context, missing func(context.Context) (string, error)) (last string, err error) {
	last = "the API server has not answered"
	err = wait.PollUntilContextTimeout(ctx, poll, f.options.Timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-f.failed:
			return false, err
		default:
		}
		now, err := missing(ctx)
		if err == nil {
			last = now
		}
		return err == nil && now == "", err
	})
	if wait.Interrupted(err) {
		return last, nil
	}
	return "", err
}

// missing says what a node lacks: being Ready, or slices that its templates give it.
func (f *fleet) missing(ctx context.Context, name string) (string, error) {
	node, err := f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if !isReady(node) {
		return "it is not Ready: do the Stages, or the kwok that runs, make it so?", nil
	}
	wanted, err := f.renderer.Render(ctx, node)
	if err != nil {
		return "", err
	}
	found, err := f.slices(ctx, name)
	if err != nil {
		return "", err
	}
	want, got := devicesOf(wanted.Slices), devicesOf(found)
	for driver, count := range want {
		if got[driver] < count {
			return fmt.Sprintf("driver %s has %d of %d devices there: does publishWhen match the node?", driver, got[driver], count), nil
		}
	}
	return "", nil
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// devicesOf counts the devices of each driver.
func devicesOf(slices []*resourcev1.ResourceSlice) map[string]int {
	count := map[string]int{}
	for _, slice := range slices {
		count[slice.Spec.Driver] += len(slice.Spec.Devices)
	}
	return count
}

// slices are those of a node.
func (f *fleet) slices(ctx context.Context, node string) ([]*resourcev1.ResourceSlice, error) {
	list, err := f.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, node).String(),
	})
	if err != nil {
		return nil, err
	}
	slices := make([]*resourcev1.ResourceSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return slices, nil
}

// removeNodes deletes the nodes, and waits until their slices are gone, so that the next test
// finds nothing.
func (f *fleet) removeNodes(ctx context.Context) {
	var errs []error
	for _, node := range f.nodes {
		err := f.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, node := range f.nodes {
		left, err := f.await(ctx, func(ctx context.Context) (string, error) {
			slices, err := f.slices(ctx, node)
			if len(slices) == 0 {
				return "", err
			}
			return fmt.Sprintf("%d of its slices are left", len(slices)), err
		})
		if err == nil && left != "" {
			err = fmt.Errorf("node %s: %s after %s", node, left, f.options.Timeout)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		f.t.Errorf("remove fake nodes: %v", err)
	}
}

// removeLeases deletes the nodes' leases, when kwok has ended: without a garbage collector
// they would stay, and the kwok of the next test would find the wrong holder.
func (f *fleet) removeLeases(ctx context.Context) {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	for _, node := range f.nodes {
		err := leases.Delete(ctx, node, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			f.t.Errorf("remove lease of fake node %s: %v", node, err)
		}
	}
}

// output writes to the test's log until the test ends: kwok does not wait for all that it has
// started.
type output struct {
	mu sync.Mutex
	to io.Writer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(text)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = io.Discard
}
