package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// wrongSignals says which metrics of the sidecars and which statuses of templates
// say something that is not true.
func (e *editor) wrongSignals(ctx context.Context, s *state) []string {
	list, err := e.world.objects(kindTemplate).List(ctx, metav1.ListOptions{})
	wrong := e.wrongReloads(ctx)
	if apierrors.IsNotFound(err) { // there is no definition
		return wrong
	} else if err != nil {
		return append(wrong, "signals: "+err.Error())
	}
	for i := range list.Items {
		if problem := e.wrongStatus(&list.Items[i], s); problem != "" {
			wrong = append(wrong, "signals: template "+list.Items[i].GetName()+": "+problem)
		}
	}
	return wrong
}

// carriersOfMetric are what the metrics call the carriers.
var carriersOfMetric = map[string]func(source string) bool{
	"files": func(name string) bool { return name == fileSource },
	"ConfigMap " + namespace + "/" + configMap: func(name string) bool { return name == mapSource },
	"custom resources":                         func(name string) bool { return strings.Contains(name, "/") },
}

// wrongReloads says which sidecars have not seen, or deny, that something is refused.
func (e *editor) wrongReloads(ctx context.Context) []string {
	var wrong []string
	for _, process := range e.world.running() {
		if err := process.WaitReady(ctx); err != nil { // it may have been started a moment ago
			wrong = append(wrong, "signals: "+err.Error())
			continue
		}
		for carrier, has := range carriersOfMetric {
			value, err := process.Metric(ctx, "kwok_dra_config_last_reload_successful", fmt.Sprintf("carrier=%q", carrier))
			if err != nil {
				wrong = append(wrong, "signals: "+err.Error())
				continue
			}
			if wants := e.reloads(has); !slices.Contains(wants, value) {
				wrong = append(wrong, fmt.Sprintf("signals: last_reload_successful of %s is %v, want one of %v", carrier, value, wants))
			}
		}
	}
	return wrong
}

// reloads are what the metric of a carrier may be: 0 where any of it is refused.
func (e *editor) reloads(has func(source string) bool) []float64 {
	var values []float64
	for _, f := range e.forces() {
		value := 1.0
		for source := range f.refused {
			if has(source) {
				value = 0
			}
		}
		values = append(values, value)
	}
	return values
}

// wrongStatus says what is wrong with the status of a template. Where it is not
// certain what is in force, or slices may stay, only whether the newest version is.
func (e *editor) wrongStatus(object *unstructured.Unstructured, s *state) string {
	var status v1alpha1.ResourcePoolTemplateStatus
	if given, is, err := unstructured.NestedMap(object.Object, "status"); is && err == nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &status)
	}
	accepted := meta.FindStatusCondition(status.Conditions, "Accepted")
	published := meta.FindStatusCondition(status.Conditions, "Published")
	if accepted == nil || published == nil {
		return "has no status"
	}
	if accepted.ObservedGeneration != object.GetGeneration() {
		return fmt.Sprintf("its status is of generation %d, want %d", accepted.ObservedGeneration, object.GetGeneration())
	}
	all := e.forces()
	may, pending := map[metav1.ConditionStatus]bool{}, false
	for _, f := range all {
		_, refused := f.refused[objectOf(object.GetName())]
		may[statusOf(!refused)] = true
		pending = pending || f.frozen
	}
	if !may[accepted.Status] && !pending { // while nothing is in force, what was shown before stays
		return fmt.Sprintf("Accepted is %s: %s", accepted.Status, accepted.Message)
	}
	certain := len(all) == 1 && all[0].refused[objectOf(object.GetName())] == "" && !all[0].held && !all[0].frozen
	if want, sure := s.publishedWhere(object.GetName()); certain && sure && published.Status != statusOf(want) {
		return fmt.Sprintf("Published is %s: %s", published.Status, published.Message)
	}
	return ""
}

func statusOf(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// publishedWhere reports whether a template is published, on one node at least and
// wherever it is to be. It is not sure where a node is not, or an annotation is in
// the way.
func (s *state) publishedWhere(name string) (is, sure bool) {
	for _, node := range s.nodes {
		if !s.selection.has(node) {
			continue
		}
		if !ready(node) || held(node) {
			return false, false
		}
		pool := wantedPool{devices: map[string]wantedDevice{}}
		for _, t := range s.standing(node, s.templates[name].driver) {
			switch {
			case t.name == name && (t.shared || !pool.hasAny(t.devices(node))):
				is = is || !s.retired(node)
			case t.name == name:
				return false, true // it is left out on this node
			case !t.shared && !pool.hasAny(t.devices(node)):
				pool.take(t.devices(node))
			}
		}
	}
	return is, true
}
