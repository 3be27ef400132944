package record

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/generate"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// recordTemplates makes the templates, and notes of what they cannot tell.
func recordTemplates(ctx context.Context, w *world, nodes *corev1.NodeSelector, took map[string]histogram) ([]byte, []string, error) {
	made, notes, err := generate.Model(ctx, w.node, w.slices)
	if err != nil {
		return nil, nil, err
	}
	if len(made) == 0 {
		return nil, notes, nil
	}
	var out bytes.Buffer
	writeComment(&out, "", notes...)
	separator := ""
	for _, template := range made {
		driver := template.Spec.Driver
		l, err := learnClaimStatus(w.listPrepared(driver, template.Pool))
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, l.notes...)
		out.WriteString(separator)
		separator = "---\n"
		writeComment(&out, "", fmt.Sprintf("Pool %s of driver %s on node %s.", template.Pool, driver, w.node.Name))
		writeComment(&out, "", l.notes...)
		if l.edits != "" {
			writeComment(&out, "", "The CDI devices would do this to a container. To have kwok-dractl pod show it, say it in containerEdits:")
			writeComment(&out, "  ", l.edits)
		}
		if calls := took[driver].callCount(); calls > 0 {
			p50 := took[driver].medianLatency()
			writeComment(&out, "", fmt.Sprintf("%s took %s (p50 of %.0f). With the general Stages for Pods, this annotation has a Pod wait for it, and %s for the kubelet:",
				prepareCall, p50, calls, kubeletTime))
			writeComment(&out, "  ", fmt.Sprintf("pod-prepare.stage.kwok.x-k8s.io/delay: %s", kubeletTime+p50))
		}
		if err := completeTemplate(template, l, nodes); err != nil {
			return nil, nil, err
		}
		if err := output.Objects(&out, output.YAML, []*unstructured.Unstructured{template.Object}); err != nil {
			return nil, nil, err
		}
	}
	if problems := check.Documents(documents.Split("recorded", out.Bytes())).Problems; len(problems) > 0 {
		return nil, nil, fmt.Errorf("the templates would be refused: %s", problems[0])
	}
	return out.Bytes(), notes, nil
}

// completeTemplate puts what is not of slices into a template as it is printed.
func completeTemplate(template generate.Modelled, l *learned, nodes *corev1.NodeSelector) error {
	parts := template.Spec
	parts.ClaimStatus = l.status
	if nodes != nil {
		parts.NodeSelector = nodes
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&parts)
	if err != nil {
		return fmt.Errorf("encode template %s: %w", template.Name, err)
	}
	for _, name := range []string{"claimStatus", "nodeSelector"} {
		if value, has := spec[name]; has {
			template.Object.Object["spec"].(map[string]any)[name] = value
		}
	}
	return nil
}

// writeComment writes lines of a comment.
func writeComment(out *bytes.Buffer, indent string, all ...string) {
	for _, text := range all {
		for line := range strings.Lines(text) {
			fmt.Fprintf(out, "# %s%s\n", indent, strings.TrimRight(line, "\n"))
		}
	}
}
