package devices

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	labelled := func(name, devices, labels string) *Template {
		return compile(t, name, namedDevices(strings.Split(devices, ",")...)+"sliceLabels: {"+labels+"}\n")
	}
	long := strings.Repeat("n", 64)
	for name, test := range map[string]struct {
		node      string
		templates []*Template
		want      []map[string]string
	}{
		"none":              {"n", []*Template{compile(t, "a", namedDevices("x"))}, []map[string]string{{}}},
		"constant":          {"n", []*Template{labelled("a", "x", `k: v, e: ""`)}, []map[string]string{{"k": "v", "e": ""}}},
		"template":          {"n", []*Template{labelled("a", "x", `b: "{{ .Node.metadata.uid }}", a: "{{ .Node.metadata.name }}"`)}, []map[string]string{{"a": "n", "b": "uid-of-n"}}},
		"beside templates":  {"n", []*Template{compile(t, "a", oneGPU(`a: "{{ .Index }}"`)+`sliceLabels: {k: "{{ .Node.metadata.name }}"}`)}, []map[string]string{{"k": "n"}}},
		"too long":          {long, []*Template{labelled("a", "x", `k: v, node: "{{ .Node.metadata.name }}"`)}, []map[string]string{{"k": "v"}}},
		"63 characters":     {long[:63], []*Template{labelled("a", "x", `node: "{{ .Node.metadata.name }}"`)}, []map[string]string{{"node": long[:63]}}},
		"no such field":     {"n", []*Template{labelled("a", "x", `zone: "{{ .Node.metadata.labels.zone }}"`)}, []map[string]string{{}}},
		"two agree":         {"n", []*Template{labelled("a", "x", "k: v"), labelled("b", "w", "k: v, l: w")}, []map[string]string{{"k": "v", "l": "w"}}},
		"two differ":        {"n", []*Template{labelled("a", "x", "k: v, l: a"), labelled("b", "w", "k: v, l: b"), labelled("c", "z", "l: a")}, []map[string]string{{"k": "v"}}},
		"slices of two":     {"n", []*Template{labelled("a", "x", "k: v"), compile(t, "b", namedDevices("w")+"slices: [{devices: [w]}]\nsliceLabels: {k: w}")}, []map[string]string{{"k": "w"}, {"k": "v"}}},
		"of counters alone": {"n", []*Template{compile(t, "a", "driver: d\ndevices: [{name: x, counters: {m: 1}}]\nsliceLabels: {k: v}"), labelled("b", "w", "l: w")}, []map[string]string{{"k": "v"}, {"k": "v", "l": "w"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pools := render(t, newNode(test.node, nil), test.templates...)
			require.Len(t, pools, 1)
			made, err := pools[0].Slices(CountersApart)
			require.NoError(t, err)
			var got []map[string]string
			for i := range made {
				got = append(got, pools[0].Labels(&made[i]))
			}
			require.Equal(t, test.want, got)
		})
	}
}

func TestLabelsOfASharedPool(t *testing.T) {
	t.Parallel()
	pool, err := compile(t, "a", namedDevices("x")+"sharedWith: {allNodes: true}\npoolName: p\nsliceLabels: {k: '{{ add 1 2 }}'}").NewSharedPool()
	require.NoError(t, err)
	made, err := pool.Slices(CountersApart)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "3"}, pool.Labels(&made[0]))
}
