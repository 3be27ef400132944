package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllProblemsAtOnce: what decoding, validation and compiling find, each of
// which would hide the next.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"stages": {`
  driver: gpu_h
  publishWhn: {}
  retireWhen: {matchExpressions: [{key: '.status |', operator: Exists}]}
  poolName: '{{ .Node'
  devices:
  - name: gpu
    attributes:
      index: {int: eight}
      uuid: '{{ uuid'
      model: a
    capacity: {memory: 80GB!, cache: '{{ 1'}
`, []string{
			"spec.publishWhn", "spec.devices[0].attributes[index]", "spec.driver", "spec.devices[0].capacity[memory]",
			"spec.retireWhen.matchExpressions[0]", "spec.poolName", "spec.devices[0].attributes[uuid]", "spec.devices[0].capacity[cache]",
		}},
		"nothing that only seems wrong": {`
  driver: gpu.example.com
  devices:
  - {name: GPU, count: 2, counters: {m: 1}}
  - {name: part, consumesCounters: [{counterSet: gpu-0-counters, counters: {m: {value: 1}}}]}
  slices: [{devices: [gpu]}, {devices: [part]}]
`, []string{"spec.devices[0].name"}},
		"type of partitions": {`
  driver: gpu.example.com
  partitionTypeAttribute: gpu.example.com/profile
  devices:
  - {name: gpu, counters: {m: 1}, attributes: {profile: {strin: a}}}
`, []string{"spec.devices[0].attributes[profile]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode("file.yaml", []byte("apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: ResourcePoolTemplate\nmetadata: {name: a}\nspec:"+test.spec))
			refusals, rest := Refusals(err)
			require.NoError(t, rest)
			require.Len(t, refusals, 1)
			var got []string
			for _, p := range refusals[0].Problems {
				got = append(got, p.Path)
			}
			require.ElementsMatch(t, test.want, got, "%v", err)
		})
	}
}

func TestRefusalsOfSeveralDocuments(t *testing.T) {
	t.Parallel()
	_, err := Decode("file.yaml", []byte("kind: A\n---\n{\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"))
	refusals, rest := Refusals(err)
	require.NoError(t, rest)
	require.Len(t, refusals, 3)
	require.Equal(t, "apiVersion", refusals[0].Problems[0].Path)
	require.Positive(t, refusals[1].Problems[0].Line)
	require.Equal(t, `Pod "p"`, refusals[2].Object)
}
