package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/demo/show"
	"github.com/kwok-dra/kwok-dra/test/sidecar"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// patience bounds each wait. All of them take well under a second.
const patience = time.Minute

type story struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	sidecar *sidecar.Process
}

func (s *story) startCluster(ctx context.Context) error {
	show.Chapter("A control plane with kwok, all of it real, on loopback")
	c, err := show.StartCluster(ctx)
	if err != nil {
		return err
	}
	s.cluster = c
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	s.client, err = kubernetes.NewForConfig(config)
	return err
}

func (s *story) startSidecar(ctx context.Context) error {
	show.Chapter("The sidecar, and what devices there are to be")
	if err := show.Apply(ctx, s.cluster, manifests, "configuration.yaml"); err != nil {
		return err
	}
	kubeconfig, err := sidecar.ServiceAccount(ctx, s.cluster)
	if err != nil {
		return err
	}
	fmt.Println("Building kwok-dra (a minute or two for the first time, seconds later) ...")
	if _, err := sidecar.Binary(); err != nil {
		return err
	}
	started := time.Now()
	s.sidecar, err = sidecar.Start(ctx, s.cluster, "--kubeconfig", kubeconfig, "--config-map", "kube-system/kwok-dra")
	if err == nil {
		fmt.Printf("kwok-dra was ready %d ms after its start.\n", time.Since(started).Milliseconds())
	}
	return err
}

func (s *story) createNodes(ctx context.Context) error {
	show.Chapter("Four fake nodes of two kinds")
	if err := show.Apply(ctx, s.cluster, manifests, "nodes.yaml"); err != nil {
		return err
	}
	return await(ctx, func() (bool, error) {
		all, err := s.slices(ctx)
		return len(all) == 4, err
	})
}

func (s *story) showSlices(ctx context.Context) error {
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	all, err := s.slices(ctx)
	if err != nil {
		return err
	}
	table := newTable("NODE", "INSTANCE TYPE", "READY", "SLICES", "DEVICES", "DRIVER", "PRODUCT")
	for _, node := range nodes.Items {
		slice := all[slices.IndexFunc(all, func(s resourcev1.ResourceSlice) bool { return *s.Spec.NodeName == node.Name })]
		table.row(node.Name, node.Labels[corev1.LabelInstanceTypeStable], ready(&node), 1, len(slice.Spec.Devices),
			slice.Spec.Driver, *slice.Spec.Devices[0].Attributes["productName"].StringValue)
	}
	table.print()
	return nil
}

func (s *story) runPods(ctx context.Context) error {
	show.Chapter("A Deployment whose Pods each claim one GPU with more than 40Gi")
	if err := show.Apply(ctx, s.cluster, manifests, "workload.yaml"); err != nil {
		return err
	}
	var pods *corev1.PodList
	err := await(ctx, func() (bool, error) {
		var err error
		pods, err = s.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		return err == nil && len(pods.Items) == 4, err
	})
	if err != nil {
		return err
	}
	table := newTable("POD", "STATUS", "NODE", "DEVICE", "PREPARED", "REPORTED BY THE DRIVER")
	for _, pod := range pods.Items {
		claim, err := s.client.ResourceV1().ResourceClaims("default").Get(ctx, *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get claim: %w", err)
		}
		for _, device := range claim.Status.Devices {
			table.row(pod.Name, pod.Status.Phase, pod.Spec.NodeName, device.Device, device.Conditions[0].Status, string(device.Data.Raw))
		}
	}
	table.print()
	return nil
}

func (s *story) deleteNode(ctx context.Context) error {
	show.Chapter("A node goes, and its slices with it")
	if err := s.client.CoreV1().Nodes().Delete(ctx, "t4-1", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node: %w", err)
	}
	deleted := time.Now()
	err := await(ctx, func() (bool, error) {
		all, err := s.slices(ctx)
		return len(all) == 3, err
	})
	if err != nil {
		return err
	}
	fmt.Printf("Node t4-1 deleted; its slice was gone %d ms later. Left are:\n\n", time.Since(deleted).Milliseconds())
	list, err := s.cluster.Kubectl(ctx, "get", "resourceslices")
	fmt.Print(list)
	return err
}

func (s *story) sayWhatIsNext() {
	show.Chapter("It is yours")
	fmt.Printf(`Everything keeps running. Look around with:

  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get resourceslices -o wide
  kubectl get resourceclaims -o yaml
  kubectl -n kube-system edit configmap kwok-dra    # change the devices, live
  tail -f %s

Remove it all with:  make demo-down
`, s.cluster.Kubeconfig(), filepath.Dir(s.cluster.Binary("kubectl")), s.sidecar.Log)
}

func (s *story) slices(ctx context.Context) ([]resourcev1.ResourceSlice, error) {
	list, err := s.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	return list.Items, nil
}

func await(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}

type table struct{ *tabwriter.Writer }

func newTable(columns ...string) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)}
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	return t
}

func (t table) row(cells ...any) {
	for i, cell := range cells {
		fmt.Fprint(t, map[bool]string{true: "\t"}[i > 0], cell)
	}
	fmt.Fprintln(t)
}

func (t table) print() {
	_ = t.Flush()
}
