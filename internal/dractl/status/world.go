package status

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
)

// world is the state of a cluster.
type world struct {
	clusterdevices.Objects
	// selected are the names of the nodes that the user selects by labels, or nil where all are shown.
	selected map[string]bool
}

// selectNodes learns which nodes the user selects.
func (w *world) selectNodes(nodes []*corev1.Node) {
	w.selected = map[string]bool{}
	for _, node := range nodes {
		w.selected[node.Name] = true
	}
}

func (w *world) addUnseen(unseen string) {
	w.Unseen = strings.Trim(w.Unseen+"\n"+unseen, "\n")
}

// describeUnseenNodes says what is not known of devices if their nodes are not.
func describeUnseenNodes(why string) string {
	return "Nodes are not seen, and all are shown as Ready: " + why
}

// readCluster reads a world, and which nodes have the labels of a selector. Without one, the right to
// list nodes is not required.
func readCluster(ctx context.Context, client kubernetes.Interface, selector string) (*world, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list resourceslices: %w", err)
	}
	claims, err := client.ResourceV1().ResourceClaims("").List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list resourceclaims: %w", err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, cached)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	events, err := client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + clusterdevices.FailedPrepare})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	nodes, nodesErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if nodesErr != nil && (selector != "" || !apierrors.IsForbidden(nodesErr)) {
		return nil, fmt.Errorf("list nodes: %w", nodesErr)
	}
	w := &world{Objects: clusterdevices.Objects{Slices: cluster.Pointers(slices.Items), Claims: cluster.Pointers(claims.Items), Pods: cluster.Pointers(pods.Items), Failures: cluster.Pointers(events.Items)}}
	rules, unseen, err := taintrules.List(ctx, client)
	w.Unseen = unseen
	if nodesErr != nil {
		w.addUnseen(describeUnseenNodes(nodesErr.Error()))
	} else {
		w.AddReadiness(cluster.Pointers(nodes.Items))
	}
	if selector != "" {
		w.selectNodes(cluster.Pointers(nodes.Items))
	}
	for _, rule := range rules {
		w.Rules = append(w.Rules, inventory.TaintRuleOf(rule))
	}
	return w, err
}
