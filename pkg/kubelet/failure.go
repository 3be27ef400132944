package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/kubelet/root"
)

// startAgain is how often it is tried to start a node whose files cannot be used.
const startAgain = 20 * time.Second

// failure is why a node cannot serve real drivers: its files cannot be used. No plugin can register
// then, and what is prepared is not known; a kubelet would not start either. Pods that need none of that
// go on.
type failure struct {
	node string
	err  error
	// ofNode says that the directory can be used, and the folder of the node cannot.
	ofNode bool
}

func (f *failure) Error() string {
	return fmt.Sprintf("the kubelet of node %s cannot serve real drivers: %v", f.node, f.err)
}

func (f *failure) Unwrap() error { return f.err }

// failureOf is why a node cannot serve real drivers, or nil.
func (k *Kubelets) failureOf(name string) *failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failures[name]
}

func (k *Kubelets) forgetFailure(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.failures, name)
}

// report notes that a node cannot serve real drivers, and says so once: in the log, and on the Node where
// it is about that alone. The Pods of real drivers say it themselves.
func (k *Kubelets) report(ctx context.Context, fake *corev1.Node, now *failure) {
	k.mu.Lock()
	before := k.failures[fake.Name]
	k.failures[fake.Name] = now
	k.mu.Unlock()
	if before != nil && before.Error() == now.Error() {
		return
	}
	klog.FromContext(ctx).Error(now, "Starting the kubelet of the node failed, trying again", "node", fake.Name)
	if k.Recorder != nil && now.ofNode {
		k.Recorder.Event(fake, corev1.EventTypeWarning, v1alpha1.ReasonKubeletNotStarted, v1alpha1.EventMessage(now))
	}
	k.nodeChanged(fake.Name) // its Pods need not wait for it any more, or have to say why they do
}

// open opens the files of a node. An error is a failure of the node.
func (k *Kubelets) open(directory string, fake *corev1.Node) (*root.Root, error) {
	opened, err := root.OpenDirectory(directory)
	if err != nil {
		return nil, &failure{node: fake.Name, err: err}
	}
	folder, err := opened.Make(fake.Name, fake.UID)
	if err != nil {
		return nil, &failure{node: fake.Name, err: err, ofNode: true}
	}
	return folder, nil
}
