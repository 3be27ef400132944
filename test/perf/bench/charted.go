package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// driverNamespace has the driver Pods, and driverPod selects them in a template.
const (
	driverNamespace = "driver"
	driverPod       = "  driverPod: {namespace: driver, selector: {matchLabels: {app: plugin}}}\n"
)

// charted publishes the slices of the whole fleet for driver Pods, as a chart has them.
type charted struct {
	*world
	comparison comparison
}

func newCharted(w *world) part {
	c := &charted{world: w}
	template := &way{name: "by template", run: c.publishByTemplate(fleet.Template)}
	chart := &way{name: "by chart", run: c.publishByTemplate(strings.Replace(fleet.Template, "spec:\n", "spec:\n"+driverPod, 1))}
	c.comparison = comparison{unit: "slice", count: w.nodes, limits: []*way{template}, ways: []*way{chart, template}}
	return part{
		title: fmt.Sprintf("Publishing the fleet by template and by chart, %d rounds", w.rounds),
		run:   c.run,
		print: c.print,
		takes: time.Duration(w.rounds) * w.perNode(20*time.Millisecond),
	}
}

// run keeps the nodes Ready meanwhile, or the Pods would not be.
func (c *charted) run(ctx context.Context) (err error) {
	if err := c.playHeartbeats(ctx); err != nil {
		return err
	}
	if err := fleet.CreateNamespace(ctx, c.client, driverNamespace); err != nil {
		return err
	}
	if err := fleet.InParallel(c.nodes, func(i int) error { return c.createDriverPod(ctx, fmt.Sprintf("fleet-%d", i)) }); err != nil {
		return fmt.Errorf("create driver Pods: %w", err)
	}
	defer func() { err = errors.Join(err, fleet.DeletePods(ctx, c.client, driverNamespace)) }()
	if err := c.deleteSlices(ctx); err != nil { // of the part before
		return err
	}
	return c.comparison.run(ctx, c.rounds)
}

// createDriverPod makes a Pod as a kubelet leaves it once the plugin runs.
func (c *charted) createDriverPod(ctx context.Context, node string) error {
	pods := c.client.CoreV1().Pods(driverNamespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "plugin-" + node, Labels: map[string]string{"app": "plugin"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "plugin", Image: "example.com/plugin:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// publishByTemplate has a template come while the sidecar runs. What is measured begins with it: for driver
// Pods the sidecar starts to watch them.
func (c *charted) publishByTemplate(template string) func(context.Context, int) (sample, error) {
	return func(ctx context.Context, _ int) (sample, error) {
		process, err := c.startSidecar(ctx, "")
		if err != nil {
			return sample{}, err
		}
		start := time.Now()
		s, err := c.publishTemplate(ctx, process, template)
		s.took = time.Since(start)
		if err != nil {
			return s, err
		}
		if err := process.Stop(); err != nil {
			return s, err
		}
		return s, c.deleteSlices(ctx)
	}
}

func (c *charted) print(out io.Writer) {
	fmt.Fprintf(out, "\nCold publish of %d nodes for the Pods of a driver's DaemonSet\n", c.nodes)
	c.comparison.print(out)
	fmt.Fprintln(out, "aim: by chart takes at most 1.2 times as long as by template, which is a rate >= 0.83")
}
