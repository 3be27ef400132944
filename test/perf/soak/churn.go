package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
)

// churn makes random changes. It knows what there is, since nobody else makes
// any.
type churn struct {
	world *world
	want  *soak
	rand  *rand.Rand

	made, named int
	nodes       []*node
	pods        []*pod
	round       int
}

type node struct {
	name    string
	tainted bool
	taken   [fleet.Devices]bool
}

type pod struct {
	name   string
	node   *node
	device int
}

func newChurn(w *world, want *soak) *churn {
	return &churn{world: w, want: want, rand: rand.New(rand.NewPCG(want.seed, want.seed))}
}

// fillFleet makes as many nodes and Pods as there are to be.
func (c *churn) fillFleet(ctx context.Context) error {
	for len(c.nodes) < c.want.nodes {
		if err := c.addNode(ctx); err != nil {
			return err
		}
	}
	for len(c.pods) < c.want.pods {
		if err := c.addPod(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Templates change once in that many changes, as each is a change of all nodes.
const templateEvery = 600

// makeChange makes one change.
func (c *churn) makeChange(ctx context.Context) error {
	c.made++
	switch n := c.rand.IntN(20); {
	case c.made%templateEvery == 0:
		return c.changeTemplates(ctx)
	case n < 10:
		return c.changePods(ctx)
	case n < 13:
		return c.changeNodes(ctx)
	}
	return c.changeTaint(ctx)
}

func (c *churn) changePods(ctx context.Context) error {
	if c.rand.IntN(2*c.want.pods) >= len(c.pods) {
		return c.addPod(ctx)
	}
	return c.removePod(ctx, c.pods[c.rand.IntN(len(c.pods))])
}

func (c *churn) changeNodes(ctx context.Context) error {
	if c.rand.IntN(2*c.want.nodes) >= len(c.nodes) {
		return c.addNode(ctx)
	}
	return c.removeNode(ctx, c.nodes[c.rand.IntN(len(c.nodes))])
}

// newName makes a name that nothing has had.
func (c *churn) newName(kind string) string {
	c.named++
	return fmt.Sprintf("%s-%d", kind, c.named)
}

func (c *churn) addNode(ctx context.Context) error {
	made := &node{name: c.newName("node")}
	if _, err := c.world.client.CoreV1().Nodes().Create(ctx, fleet.NewNode(made.name), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	c.nodes = append(c.nodes, made)
	return nil
}

// removeNode deletes a node, its Pods first.
func (c *churn) removeNode(ctx context.Context, gone *node) error {
	for _, p := range slices.Clone(c.pods) {
		if p.node != gone {
			continue
		}
		if err := c.removePod(ctx, p); err != nil {
			return err
		}
	}
	if err := c.world.client.CoreV1().Nodes().Delete(ctx, gone.name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete node: %w", err)
	}
	c.nodes = slices.DeleteFunc(c.nodes, func(n *node) bool { return n == gone })
	return nil
}

func (c *churn) addPod(ctx context.Context) error {
	on := c.nodes[c.rand.IntN(len(c.nodes))]
	device := slices.Index(on.taken[:], false)
	if device < 0 {
		return nil // a full node is rare, and the next change takes another
	}
	name := c.newName("pod")
	created := fleet.NewPod(namespace, name, "nobody", corev1.PodResourceClaim{ResourceClaimName: &name})
	if err := fleet.CreateAllocated(ctx, c.world.client, created, on.name, fmt.Sprint("gpu-", device)); err != nil {
		return err
	}
	c.world.effects.expectEffect(change{prepared, name})
	if err := fleet.Bind(ctx, c.world.client, created, on.name); err != nil {
		return fmt.Errorf("bind pod: %w", err)
	}
	on.taken[device] = true
	c.pods = append(c.pods, &pod{name, on, device})
	return nil
}

func (c *churn) removePod(ctx context.Context, gone *pod) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := c.world.client.CoreV1().Pods(namespace).Delete(ctx, gone.name, now); err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	if err := c.world.client.ResourceV1().ResourceClaims(namespace).Delete(ctx, gone.name, now); err != nil {
		return fmt.Errorf("delete claim: %w", err)
	}
	c.world.effects.cancelEffect(change{prepared, gone.name})
	gone.node.taken[gone.device] = false
	c.pods = slices.DeleteFunc(c.pods, func(p *pod) bool { return p == gone })
	return nil
}

// changeTaint taints the first device of a node, or makes it whole.
func (c *churn) changeTaint(ctx context.Context) error {
	on := c.nodes[c.rand.IntN(len(c.nodes))]
	var value *string
	if !on.tainted {
		value = new("gpu-0:soak/broken=yes:NoSchedule")
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{"dra.kwok.x-k8s.io/device-taints": value}}})
	if err != nil {
		return fmt.Errorf("encode annotation: %w", err)
	}
	on.tainted = !on.tainted
	// Where the one before has not shown yet, perhaps neither ever will.
	if !c.world.effects.cancelEffect(change{tainted, taintOf(on.name, !on.tainted)}) {
		c.world.effects.expectEffect(change{tainted, taintOf(on.name, on.tainted)})
	}
	if _, err := c.world.client.CoreV1().Nodes().Patch(ctx, on.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate node: %w", err)
	}
	return nil
}

// changeTemplates changes the template of all nodes, and has another one come or
// go.
func (c *churn) changeTemplates(ctx context.Context) error {
	c.world.effects.cancelEffect(change{templated, fmt.Sprint(c.round)})
	c.round++
	c.world.effects.expectEffect(change{templated, fmt.Sprint(c.round)})
	return fleet.Configure(ctx, c.world.client, templatesOf(c.round))
}

// extraTemplate gives every node devices of another driver.
const extraTemplate = `
---
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: extra}
spec: {driver: nic.example.com, devices: [{name: nic, count: 2}]}
`

// templatesOf are those of a round. Every other round has the extra one.
func templatesOf(round int) string {
	documents := strings.Replace(fleet.Template, "attributes:\n", fmt.Sprintf("attributes:\n      round: %q\n", fmt.Sprint(round)), 1)
	if round%2 == 1 {
		documents += extraTemplate
	}
	return documents
}
