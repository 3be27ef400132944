package nodeserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// nodeRetryInterval is how often the port of a node is set again that could not be set.
	nodeRetryInterval = 10 * time.Second
	// restoreTimeout limits how long the nodes keep the program from ending.
	restoreTimeout = 10 * time.Second
)

// Announce has the API server send requests for all fake nodes to a port, until ctx ends, and then to kwok's
// again. The address of the nodes stays kwok's, so the server has to run on the same machine.
func Announce(ctx context.Context, client kubernetes.Interface, port, kwok int32) error {
	logger := klog.FromContext(ctx)
	set := func(ctx context.Context, object any, port int32) {
		node := object.(*corev1.Node)
		if node.Annotations["kwok.x-k8s.io/node"] == "" || node.Status.DaemonEndpoints.KubeletEndpoint.Port == port {
			return
		}
		if err := setPort(ctx, client, node.Name, port); err != nil {
			logger.Error(err, "Failed to set the port of a node", "node", node.Name)
		}
	}
	factory := informers.NewSharedInformerFactory(client, nodeRetryInterval)
	nodes := factory.Core().V1().Nodes().Informer()
	if _, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { set(ctx, object, port) },
		UpdateFunc: func(_, object any) { set(ctx, object, port) },
	}); err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	for _, node := range nodes.GetStore().List() {
		set(ctx, node, kwok)
	}
	return nil
}

func setPort(ctx context.Context, client kubernetes.Interface, node string, port int32) error {
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
	}})
	if err != nil {
		return fmt.Errorf("encode the port of node %s: %w", node, err)
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
