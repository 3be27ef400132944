package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/root"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// startRetryInterval is how often kwok-dra tries to start a node whose files cannot be used.
const startRetryInterval = 20 * time.Second

// failure says why a node cannot serve real drivers: its files cannot be used. No plugin can register
// then, and nobody knows what is prepared; a kubelet would not start either. Pods that need neither
// go on.
type failure struct {
	node string
	err  error
	// isOfNode says that the directory is fine, and that the folder of the node is not.
	isOfNode bool
}

func (f *failure) Error() string {
	return fmt.Sprintf("the kubelet of node %s cannot serve real drivers: %v", f.node, f.err)
}

func (f *failure) Unwrap() error { return f.err }

// reportFailure reports once that a node cannot serve real drivers: in the log, and in an event on the
// Node if the failure is that node's alone. Pods of real drivers get their own events.
func (k *Kubelets) reportFailure(ctx context.Context, fake *corev1.Node, failed *failure) {
	if isNew := k.recordFailure(fake.Name, failed); !isNew {
		return
	}
	klog.FromContext(ctx).Error(failed, "Failed to start the kubelet of the node; retrying", "node", fake.Name)
	if k.Recorder != nil && failed.isOfNode {
		k.Recorder.Event(fake, corev1.EventTypeWarning, v1alpha1.ReasonKubeletNotStarted, v1alpha1.EventMessage(failed))
	}
	k.nodeChanged(fake.Name) // its Pods need not wait any more, or have to report why they do
}

// openFolder makes the folder of a node, unless it exists. An error is a *failure.
func openFolder(directory string, fake *corev1.Node) (*root.Root, error) {
	opened, err := root.OpenDirectory(directory)
	if err != nil {
		return nil, &failure{node: fake.Name, err: err}
	}
	folder, err := opened.Make(fake.Name, fake.UID)
	if err != nil {
		return nil, &failure{node: fake.Name, err: err, isOfNode: true}
	}
	return folder, nil
}
