package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// copyPrefix is that of the labels and annotations of copied nodes, by driver.
const copyPrefix = "copy." + v1alpha1.GroupName + "/"

// nodeValues are what the annotations of the copied nodes hold: by node the
// values of a driver's devices, which templates find by a key.
type nodeValues struct {
	driver string
	byNode map[string]map[string][]string
	// model is that of the fleet.
	model *model
}

// keepValues stores the values of each node for its annotation, and returns the action that yields them.
func (v *nodeValues) keepValues(key string, members []*member, values [][]string) string {
	index := "0"
	for i, m := range members {
		kept := values[i]
		if isConstant(kept) {
			kept = kept[:1]
		}
		if v.byNode[m.node.Name] == nil {
			v.byNode[m.node.Name] = map[string][]string{}
		}
		v.byNode[m.node.Name][key] = kept
	}
	if slices.ContainsFunc(values, func(row []string) bool { return !isConstant(row) }) {
		index = ".Index"
		for i, m := range members {
			v.byNode[m.node.Name][key] = values[i]
		}
	}
	return fmt.Sprintf(`{{ index (index .Node.metadata.annotations %q | fromJson) %q %s }}`, copyPrefix+v.driver, key, index)
}

func isConstant(values []string) bool {
	return !slices.ContainsFunc(values, func(value string) bool { return value != values[0] })
}

// templateText is a template that yields the values: a row for each member, and in it one
// for each device.
func (v *nodeValues) templateText(key string, members []*member, values [][]string) string {
	if v.model != nil {
		return v.model.templateText(values[0])
	}
	if allEqual(values) {
		return indexTemplate(values[0])
	}
	nameless := make([][]string, len(values))
	for i, row := range values {
		for _, value := range row {
			nameless[i] = append(nameless[i], members[i].withoutNodeName(value))
		}
	}
	if text := indexTemplate(nameless[0]); allEqual(nameless) && !strings.Contains(text, `\x00`) {
		return strings.ReplaceAll(text, marker, "{{ .Node.metadata.name }}")
	}
	if label := findLabel(members, values); label != "" {
		return fmt.Sprintf("{{ index .Node.metadata.labels %q }}", label)
	}
	return v.keepValues(key, members, values)
}

func allEqual(rows [][]string) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return !slices.Equal(row, rows[0]) })
}

// findLabel finds a label that has the value on every node.
func findLabel(members []*member, values [][]string) string {
	if slices.ContainsFunc(values, func(row []string) bool { return !isConstant(row) }) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(members[0].node.Labels)) {
		same := true
		for i, m := range members {
			value, has := m.node.Labels[key]
			same = same && has && value == values[i][0] && !strings.HasPrefix(key, copyPrefix)
		}
		if same {
			return key
		}
	}
	return ""
}
