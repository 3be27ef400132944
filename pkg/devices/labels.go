package devices

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// labelPlaces are the labels of a template in the order of their keys.
func labelPlaces(labels map[string]string, path *field.Path) []place {
	var places []place
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		places = append(places, place{key: key, path: path.Key(key), value: labels[key]})
	}
	return places
}

// renderLabels leaves out what cannot be the value of a label.
func renderLabels(places []place, v *view) (map[string]string, error) {
	var labels map[string]string
	for i := range places {
		value, err := v.value(&places[i], map[string]any{})
		if err != nil {
			return nil, err
		}
		if !validation.IsLabelValue(value) {
			continue
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[places[i].key] = value
	}
	return labels, nil
}

// Labels are those of a slice of the pool: what the templates say that it has
// something of. Where these differ about a label, the slice goes without it.
func (p *Pool) Labels(of *Slice) map[string]string {
	labels, disputed := map[string]string{}, map[string]bool{}
	for i, t := range p.Templates {
		if len(p.labels[i]) == 0 || !p.Holds(of, t) {
			continue
		}
		for key, value := range p.labels[i] {
			other, has := labels[key]
			disputed[key] = disputed[key] || has && other != value
			labels[key] = value
		}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return disputed[key] })
	return labels
}

// Holds reports whether a slice of the pool has devices or counter sets of a
// template.
func (p *Pool) Holds(of *Slice, t *Template) bool {
	return len(p.Templates) == 1 ||
		slices.ContainsFunc(of.Devices, func(d resourcev1.Device) bool { return t.has(d.Name) }) ||
		slices.ContainsFunc(of.CounterSets, func(set resourcev1.CounterSet) bool {
			return slices.ContainsFunc(t.pool.CounterSets, func(own resourcev1.CounterSet) bool { return own.Name == set.Name })
		})
}
