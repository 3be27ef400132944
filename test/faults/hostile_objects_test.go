package faults

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poisoned begins the names of the nodes that do harm.
const poisoned = "poisoned"

// poison is what other clients may put into the cluster. It is there, and is
// changed over and over, while churn runs.
type poison struct {
	name string
	// nodes are made before, with the labels, and deleted after.
	nodes  int
	labels map[string]string
	// template is added to the configuration.
	template string
	churn    func(ctx context.Context, h *hostile, round int) error
	// calm does as much, and no harm. Without it the nodes are labelled.
	calm func(ctx context.Context, h *hostile, round int) error
}

func poisons() []poison {
	return []poison{
		{name: "giant annotation", nodes: 2, labels: map[string]string{kindLabel: "a"}, churn: annotateWith("example.com/giant", func(round int) string {
			return strings.Repeat(fmt.Sprintf("%07d ", round), 250<<10/8)
		})},
		{name: "device taints of 200 KB that are none", nodes: 2, labels: map[string]string{kindLabel: "a"}, churn: annotateWith(taintAnnotation, func(round int) string {
			return gibberish + strings.Repeat(fmt.Sprintf("%d:,/=\u202e", round%10), 20<<10)
		})},
		{
			name: "template without end", nodes: 2, labels: map[string]string{kindLabel: poisoned, "rounds": "9223372036854775807"},
			template: poisonousTemplate(`{{ range (int64 (index .Node.metadata.labels \"rounds\")) }}{{ end }}`), churn: relabel,
		},
		{
			name: "template that yields 10 MB", nodes: 2, labels: map[string]string{kindLabel: poisoned, "size": "10485760"},
			template: poisonousTemplate(`{{ repeat (int (index .Node.metadata.labels \"size\")) \"x\" }}`), churn: relabel,
		},
		{
			name: "template that takes all memory", nodes: 2, labels: map[string]string{kindLabel: poisoned, "rounds": "64"},
			template: poisonousTemplate(`{{ $a := \"x\" }}{{ range (int (index .Node.metadata.labels \"rounds\")) }}{{ $a = print $a $a }}{{ end }}{{ $a }}`), churn: relabel,
		},
		{
			name: "jq selector without end", nodes: 2, labels: map[string]string{kindLabel: poisoned, "loop": "true"},
			template: poisonousSelector(`{jq: {key: 'if .metadata.labels.loop then repeat(empty) else empty end', operator: Exists}}`), churn: relabel,
		},
		{
			name: "CEL selector of loops within loops", nodes: 2, labels: map[string]string{kindLabel: poisoned, "loop": "true"},
			template: poisonousSelector(`{cel: {expression: '!("loop" in self.metadata.labels) || ` + loops(9) + `'}}`), churn: relabel,
		},
		{
			name: "claims of 32 drivers", nodes: 1, labels: map[string]string{kindLabel: "many"}, template: manyTemplates(),
			churn: allocateEach(knownDrivers), calm: allocateEach(knownDrivers[:1]),
		},
		{
			// Nodes without devices that do so take as much of the servers.
			name: "nodes that come again and again", nodes: 3, labels: map[string]string{kindLabel: "a"},
			churn: recreate("a"), calm: recreate("none"),
		},
	}
}

// poisonousTemplate is harmless on the node that stands in when it is read.
func poisonousTemplate(value string) string {
	return fmt.Sprintf(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: poison}
spec:
  driver: poison.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: In, values: [%s]}]}]}
  devices: [{name: p, count: 8, attributes: {a: "%s"}}]
---
`, poisoned, value)
}

// poisonousSelector matches the node that stands in, or costs little for it.
func poisonousSelector(expression string) string {
	return strings.TrimSuffix(poisonousTemplate("x"), "---\n") + "  publishWhen: {matchExpressions: [" + expression + "]}\n---\n"
}

// loops are as many loops within each other, of ten rounds each.
func loops(depth int) string {
	if depth == 0 {
		return "true"
	}
	return "[0,1,2,3,4,5,6,7,8,9].all(i, " + loops(depth-1) + ")"
}

func annotateWith(key string, value func(round int) string) func(ctx context.Context, h *hostile, round int) error {
	return func(ctx context.Context, h *hostile, round int) error {
		return h.patchNode(ctx, fmt.Sprint(poisoned, "-", round%2), fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, key, value(round)))
	}
}

func relabel(ctx context.Context, h *hostile, round int) error {
	return h.patchNode(ctx, fmt.Sprint(poisoned, "-", round%2), fmt.Sprintf(`{"metadata": {"labels": {"round": "%d"}}}`, round))
}

func recreate(kind string) func(ctx context.Context, h *hostile, round int) error {
	return func(ctx context.Context, h *hostile, round int) error {
		ctx = context.WithoutCancel(ctx) // or one may be gone in the end
		name := fmt.Sprint(poisoned, "-", round%3)
		if err := h.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return h.createNode(ctx, name, map[string]string{kindLabel: kind})
	}
}
