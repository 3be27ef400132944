package slices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// refused reports templates that cannot be rendered for the node, and what is
// wrong with its annotation. Only a change of the node or the configuration can
// help.
func (p *Publisher) refused(node *corev1.Node, problems map[string]error) error {
	var errs []error
	for _, cause := range slices.Sorted(maps.Keys(problems)) {
		p.metrics.failing.WithLabelValues(cause).Inc()
		p.recorder.Event(node, corev1.EventTypeWarning, v1alpha1.ReasonPublishFailed, v1alpha1.EventMessage(problems[cause]))
		errs = append(errs, problems[cause])
	}
	return loop.Terminal(errors.Join(errs...))
}

// failed reports an API call that failed. What the API server refuses for good
// is reported at once, the rest when it has failed for a while.
func (p *Publisher) failed(node *corev1.Node, of scope, err error) error {
	var layout *layoutError
	switch {
	case loop.LostRace(err):
		return err
	case errors.As(err, &layout):
		return p.refused(node, map[string]error{"template": err})
	}
	p.metrics.failing.WithLabelValues("api").Inc()
	final := apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	if node != nil && (final || p.loop.Failures(of) >= loop.Patience) {
		p.recorder.Event(node, corev1.EventTypeWarning, v1alpha1.ReasonPublishFailed, v1alpha1.EventMessage(err))
	}
	return err
}

func (p *Publisher) reportDropped(ctx context.Context, node *corev1.Node, source string, field *gatedField) {
	p.metrics.dropped.WithLabelValues(source, field.name).Set(1)
	effect := ""
	if field.without != "" {
		effect = ", and its pool is not published, since " + field.without
	}
	err := fmt.Errorf("the API server drops %s of the devices of template %s%s: turn on its feature gate %s, or remove the field",
		field.name, source, effect, field.gate)
	if source == v1alpha1.DeviceTaintsAnnotation {
		err = fmt.Errorf("the API server drops the taints of annotation %s: turn on its feature gate %s, or remove the annotation",
			source, field.gate)
	}
	klog.FromContext(ctx).Error(err, "A field is dropped", "node", node.Name)
	if p.owner.Leads() { // all replicas find this out
		p.recorder.Event(node, corev1.EventTypeWarning, v1alpha1.ReasonFieldsDropped, v1alpha1.EventMessage(err))
	}
}
