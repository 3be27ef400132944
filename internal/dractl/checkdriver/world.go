package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// cleanUp bounds the deletion of what was created.
const cleanUp = 30 * time.Second

// world is what statements are tried in: a fake node with a driver, its pools, and claims.
type world struct {
	allocator

	prepared map[types.UID]*drav1.Claim
}

// site is the fake node, as the driver finds it.
type site struct {
	given

	client  kubernetes.Interface
	name    string // of the node, and the beginning of all other names
	node    *corev1.Node
	pod     *corev1.Pod
	kubelet *kubelet
}

// given is what a world is made of.
type given struct {
	arguments []string
	// folder is the one for all files, and kubeconfig a file in it.
	folder, kubeconfig string
	namespace          string
	// expected is the name of the driver, or "".
	expected string
	timeout  time.Duration
}

// newWorld creates the node.
func newWorld(ctx context.Context, g given) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", g.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if _, err := client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, groupclient.ErrUnserved
		}
		return nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	w := &world{prepared: map[types.UID]*drav1.Claim{}}
	w.site = site{given: g, client: client, name: "check-" + uuid.NewString()[:8]}
	if err := w.createNode(ctx); err != nil {
		return nil, errors.Join(err, w.deleteCreated(ctx))
	}
	return w, nil
}

// withCreateTimeout returns a context for requests that create an object. An interrupt does not cancel them:
// the API server may have created the object by then, and nobody would delete it.
func withCreateTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
}

// createNode creates what is there before the driver.
func (w *world) createNode(ctx context.Context) error {
	ctx, cancel := withCreateTimeout(ctx)
	defer cancel()
	node, err := w.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{corev1.LabelHostname: w.name}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create node %s: %w", w.name, err)
	}
	w.node = node
	// Without a Pod of that name, the claim controller would take the claims back.
	pod, err := w.client.CoreV1().Pods(w.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: w.namespace},
		Spec: corev1.PodSpec{
			NodeName: w.name, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", w.name, err)
	}
	w.pod = pod
	if err := os.Mkdir(w.cdiFolder(), 0o755); err != nil {
		return fmt.Errorf("make the folder of CDI specs: %w", err)
	}
	w.kubelet, err = startKubelet(ctx, w.folder, w.node)
	return err
}

func (s *site) cdiFolder() string { return filepath.Join(s.folder, "cdi") }

// deleteCreated ends the driver and deletes all that was created, even after ctx has ended.
func (w *world) deleteCreated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	var errs []error
	if w.process != nil {
		errs = append(errs, w.process.Kill())
	}
	if w.kubelet != nil {
		w.kubelet.stopWatching()
	}
	errs = append(errs, w.deleteClaims(ctx))
	none := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if w.class != nil {
		errs = append(errs, ignoreGone(w.client.ResourceV1().DeviceClasses().Delete(ctx, w.class.Name, none)))
	}
	if w.pod != nil {
		errs = append(errs, ignoreGone(w.client.CoreV1().Pods(w.namespace).Delete(ctx, w.pod.Name, none)))
	}
	if w.node != nil {
		errs = append(errs, ignoreGone(w.client.CoreV1().Nodes().Delete(ctx, w.node.Name, none)))
	}
	errs = append(errs, w.deleteSlices(ctx, "")) // last: the driver may just have written one
	return errors.Join(errs...)
}

// ignoreGone returns nil if the object was deleted already.
func ignoreGone(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete what was created: %w", err)
}

// waitUntil calls find until it reports nothing missing. When ctx ends, the error is what was missing last; a
// find that ctx has cut short does not count. Any other error of find ends the wait.
func waitUntil(ctx context.Context, find func() (missing string, err error)) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	started, reason := time.Now(), ""
	for {
		missing, err := find()
		switch isCut := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()); {
		case err == nil && missing != "":
			reason = missing
		case !isCut:
			return err
		case reason == "":
			reason = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %s", time.Since(started).Round(time.Second), reason)
		case <-ticker.C:
		}
	}
}
