package devices

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFieldsThatNoNodeHas are refused as a template is read, with the name that
// may be meant.
func TestFieldsThatNoNodeHas(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`{{ .Indx }}`:                                          "there is no .Indx here; did you mean .Index?",
		`{{ $.Indx }}`:                                         "there is no .Indx here; did you mean .Index?",
		`{{ add 1 .index }}`:                                   "there is no .index here; did you mean .Index?",
		`{{ .Nod.metadata.uid }}`:                              "there is no .Nod here; did you mean .Node?",
		`{{ .Node.metadata.udi }}`:                             "there is no .Node.metadata.udi here; did you mean .Node.metadata.uid?",
		`{{ .Node.Metadata.Name }}`:                            "there is no .Node.Metadata here; did you mean .Node.metadata?",
		`{{ .Node.metadata.labls.zone }}`:                      "there is no .Node.metadata.labls here; did you mean .Node.metadata.labels?",
		`{{ index .Node.metadata.labls "zone" }}`:              "did you mean .Node.metadata.labels?",
		`{{ if .Node.metadata.labels.a }}{{ .Indx }}{{ end }}`: "did you mean .Index?",

		`{{ if .Node.metadata.labels.a }}{{ else }}{{ .Indx }}{{ end }}`:     "did you mean .Index?",
		`{{ $n := .Node }}{{ $n.metadata.nam }}`:                             "there is no .Node.metadata.nam here; did you mean .Node.metadata.name?",
		`{{ with .Node.metadata }}{{ .nam }}{{ end }}`:                       "there is no .Node.metadata.nam here; did you mean .Node.metadata.name?",
		`{{ with .Node }}{{ $.Indx }}{{ end }}`:                              "did you mean .Index?",
		`{{ range .Node.status.conditions }}{{ .typ }}{{ end }}`:             "there is no .Node.status.conditions[].typ here; did you mean .Node.status.conditions[].type?",
		`{{ range $i, $c := .Node.status.conditions }}{{ $c.typ }}{{ end }}`: "did you mean .Node.status.conditions[].type?",
		`{{ (.Node.metadata).nam }}`:                                         "did you mean .Node.metadata.name?",
		`{{ printf "%s" (print .Indx) }}`:                                    "did you mean .Index?",
		`{{ .Node.metadata.labels.topology.zone }}`:                          `.Node.metadata.labels.topology has no field zone; read a key with dots by index, for example {{ index .Node.metadata.labels "topology.kubernetes.io/zone" }}`,
		`{{ .Node.metadata.name.first }}`:                                    ".Node.metadata.name has no field first",
		`{{ .Node.status.conditions.Ready }}`:                                ".Node.status.conditions is a list, which has no field Ready; use range or index",
		`{{ .Partition }}`:                                                   "there is no .Partition here; there is .Index, .Node",
		`{{ .Claim.name }}`:                                                  "there is no .Claim here; there is .Index, .Node",
	} {
		_, errs := Compile(source(t, "t", oneGPU(fmt.Sprintf("a: %q", value))))
		require.Len(t, errs, 1, value)
		require.Equal(t, "spec.devices[0].attributes[a]", errs[0].Field, value)
		require.Equal(t, value, errs[0].BadValue)
		require.Contains(t, errs[0].Detail, want, value)
	}
}

// TestFieldsOfSomeNodes are no mistakes, though the sample lacks them.
func TestFieldsOfSomeNodes(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`{{ .Node.metadata.labels.zone }}`,
		`{{ or .Node.metadata.annotations.zone "none" }}`,
		`{{ index .Node.metadata.labels "topology.kubernetes.io/zone" }}`,
		`{{ index (index .Node.metadata.annotations "copy" | fromJson) "0" .Index }}`,
		`{{ (index .Node.status.conditions 7).anything }}`,
		`{{ .Node.spec.providerID }}{{ .Node.status.nodeInfo.kubeletVersion }}`,
		`{{ .Node.status.capacity.cpu }}`,
		`{{ .Node.status.daemonEndpoints.kubeletEndpoint.Port }}`,
		`{{ range $k, $v := .Node.metadata.labels }}{{ $v }}{{ end }}`,
		`{{ range .Node.status.addresses }}{{ .address }}{{ end }}`,
		`{{ with dict "a" .Node }}{{ .a.b }}{{ $.Index }}{{ end }}`,
		`{{ $x := .Node }}{{ $x = dict "a" 1 }}{{ $x.a }}`,
		`{{ $x := dict "a" 1 }}{{ with $x }}{{ .a }}{{ end }}`,
		`{{ $l := .Node.metadata.labels }}{{ $l.a }}`,
		`{{ range until 3 }}{{ . }}{{ end }}`,
		`{{ with $x := .Node.metadata.name }}{{ $x }}{{ else }}{{ $.Index }}{{ end }}`,
		`{{ .Node.metadata.creationTimestamp }}`,
	} {
		_, errs := Compile(source(t, "t", oneGPU(fmt.Sprintf("a: %q", value))))
		require.Empty(t, errs, value)
	}
}

// TestValuesThatAreWrongOnEveryNode are refused as a template is read.
func TestValuesThatAreWrongOnEveryNode(t *testing.T) {
	t.Parallel()
	for attribute, want := range map[string]string{
		`{int: "abc{{ .Index }}"}`:                                   `yields "abc0" for device gpu: must be an integer`,
		`{int: "{{ div 1 2 }}.5"}`:                                   `yields "0.5"`,
		`{int: "abc{{ .Node.metadata.labels.index }}"}`:              `yields such as "abc1": must be an integer`,
		`{bool: "{{ .Index }}"}`:                                     `yields "0" for device gpu: must be true or false`,
		`{version: "v{{ .Index }}.0.0"}`:                             `yields "v0.0.0" for device gpu: must be a version`,
		`"{{ index (list 1) 1 }}"`:                                   "cannot be rendered",
		`"{{ fail \"no\" }}"`:                                        "cannot be rendered",
		`"{{ index (dict) \"a\" }}"`:                                 "reads what is not there",
		`"{{ .Node.metadata.name }}` + fmt.Sprintf("%065d", 0) + `"`: "must be at most 64 bytes",
	} {
		_, errs := Compile(source(t, "t", oneGPU("a: "+attribute)))
		require.Len(t, errs, 1, attribute)
		require.Equal(t, "spec.devices[0].attributes[a]", errs[0].Field, attribute)
		require.Contains(t, errs[0].Detail, want, attribute)
	}
	_, errs := Compile(source(t, "t", "driver: d\ndevices: [{name: gpu, count: 3, capacity: {a: '{{ if lt .Index 2 }}1Gi{{ end }}'}}]"))
	require.Len(t, errs, 1)
	require.Contains(t, errs[0].Detail, `yields "" for device gpu-2`, "each device is tried")

	for _, attribute := range []string{
		`{int: "{{ .Node.metadata.labels.index }}"}`, `{int: "1{{ .Node.metadata.labels.index }}"}`, `{bool: "{{ .Node.metadata.labels.on }}"}`,
		`{version: "{{ .Node.metadata.labels.a }}.0"}`, `{version: "{{ .Node.metadata.labels.a }}.{{ .Index }}.0"}`, `{int: "{{ .Node.metadata.name | trimPrefix \"node-\" }}"}`,
		`{int: "{{ if .Node.metadata.labels.a }}abc{{ else }}1{{ end }}"}`, `{ints: ["{{ .Node.metadata.labels.a }}", 2]}`,
	} {
		_, errs := Compile(source(t, "t", oneGPU("a: "+attribute)))
		require.Empty(t, errs, attribute)
	}
}

// TestWhatPartsSee: the name of a pool sees the Node only, and a partition more
// than its device.
func TestWhatPartsSee(t *testing.T) {
	t.Parallel()
	const mig = "driver: d\ndevices: [{name: gpu, counters: {m: 7}, slots: {count: 2}, attributes: {a: '%s'}, partitions: [{name: p, %s, consumes: {m: 1}, attributes: {b: '%s'}}]}]"
	for spec, want := range map[string]string{
		"driver: d\npoolName: '{{ .Node.metadata.name }}-{{ .Index }}'\ndevices: [{name: gpu}]":               "spec.poolName: there is no .Index here; there is .Node",
		"driver: d\nsliceLabels: {a: '{{ .Index }}'}\ndevices: [{name: gpu}]":                                 "spec.sliceLabels[a]: there is no .Index here; there is .Node",
		"driver: d\ndevices: [{name: 'gpu-{{ .Indx }}', count: 2}]":                                           "spec.devices[0].name: there is no .Indx here; did you mean .Index?",
		"driver: d\ndevices: [{name: gpu}]\nclaimStatus: {data: {a: '{{ .Device.nam }}'}}":                    "spec.claimStatus.data[a]: there is no .Device.nam here; did you mean .Device.name?",
		"driver: d\ndevices: [{name: gpu}]\nclaimStatus: {data: {a: '{{ range .Pods }}{{ .nam }}{{ end }}'}}": "spec.claimStatus.data[a]: there is no .Pods[].nam here; did you mean .Pods[].name?",
		fmt.Sprintf(mig, "{{ .Partition }}", "count: 2", "x"):                                                 "spec.devices[0].attributes[a]: there is no .Partition here; there is .Index, .Node",
		fmt.Sprintf(mig, "x", "count: 2", "{{ .Placement }}"):                                                 "spec.devices[0].partitions[0].attributes[b]: there is no .Placement here; there is .Index, .Node, .Partition",
		fmt.Sprintf(mig, "x", "placements: [0, 1]", "{{ .Placement }}{{ .Partition }}"):                       "",
	} {
		_, errs := Compile(source(t, "t", spec))
		if want == "" {
			require.Empty(t, errs, spec)
			continue
		}
		require.Len(t, errs, 1, spec)
		require.Equal(t, want, errs[0].Field+": "+errs[0].Detail, spec)
	}
}

// TestPoolNameOfManyNodes: nodes whose pools have one name have one pool, which is
// never complete.
func TestPoolNameOfManyNodes(t *testing.T) {
	t.Parallel()
	const one = "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node]}]}]}"
	for poolName, refused := range map[string]bool{
		"gpus": true, "'{{ add 1 2 }}'": true, "gpus\nnodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}": true,
		"'gpus-{{ .Node.metadata.name }}'": false, "gpus\nsharedWith: {allNodes: true}": false, "gpus\nnodeSelector: " + one: false,
	} {
		_, errs := Compile(source(t, "t", "driver: d\ndevices: [{name: gpu}]\npoolName: "+poolName))
		require.Equal(t, refused, len(errs) == 1, "%s: %v", poolName, errs)
	}
	_, errs := Compile(source(t, "t", "driver: d\ndevices: [{name: gpu}]\npoolName: gpus"))
	require.EqualError(t, errs.ToAggregate(), `spec.poolName: Invalid value: "gpus": must differ from node to node; leave it out for the node's name, `+
		`or use for example "{{ .Node.metadata.name }}-gpus"; for one pool that nodes share set sharedWith`)
}
