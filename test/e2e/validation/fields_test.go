package validation

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

// fieldCase is what a slice says, in YAML.
type fieldCase struct {
	spec string
	// since is the first minor of Kubernetes 1 that knows what the case is about.
	since int
	// stricter is why kwok-dra refuses what the API server takes.
	stricter string
}

// fieldCases are cases by name, from groups of cases for the same releases.
func fieldCases() map[string]fieldCase {
	cases := map[string]fieldCase{}
	for _, group := range []map[string]fieldCase{listCases(), policyCases(), counterCases(), nodeCases(), alphaCases()} {
		maps.Copy(cases, group)
	}
	return cases
}

// slice makes the slice. It is for all nodes unless the case says otherwise.
func (c fieldCase) slice(t *testing.T) *resourcev1.ResourceSlice {
	t.Helper()
	spec := resourcev1.ResourceSliceSpec{Driver: harness.Driver, Pool: resourcev1.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(c.spec), &spec), c.spec)
	if spec.NodeName == nil && spec.NodeSelector == nil && spec.AllNodes == nil && spec.PerDeviceNodeSelection == nil {
		spec.AllNodes = new(true)
	}
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}, Spec: spec}
}

// deviceCases are cases about one device, by the fields that it has.
func deviceCases(prefix string, since int, fields map[string]string) map[string]fieldCase {
	cases := map[string]fieldCase{}
	for name, text := range fields {
		cases[prefix+" "+name] = fieldCase{spec: "devices: [{name: gpu, " + text + "}]", since: since}
	}
	return cases
}

// numbers are n items of a list or object in YAML.
func numbers(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

func listCases() map[string]fieldCase {
	long := strings.Repeat("a", 65)
	return deviceCases("list", 36, map[string]string{
		"of each type":    `attributes: {a: {strings: [a, ""]}, b: {ints: [1, 1]}, c: {bools: [true]}, d: {versions: [1.2.3]}}`,
		"of nothing":      `attributes: {a: {ints: []}}`,
		"with a long one": `attributes: {a: {strings: [a, ` + long + `]}}`,
		"of 64 bytes":     `attributes: {a: {strings: [a, ` + long[1:] + `]}}`,
		"no version":      `attributes: {a: {versions: [1.2.3, "1.2"]}}`,
		"and a scalar":    `attributes: {a: {ints: [1], int: 1}}`,
		"48 values":       `attributes: {a: {ints: [` + numbers(46, "%d") + `]}, b: {bool: true}, c: {strings: [a]}}`,
		"49 values":       `attributes: {a: {ints: [` + numbers(47, "%d") + `]}, b: {bool: true}, c: {strings: [a]}}`,
	})
}

func policyCases() map[string]fieldCase {
	policies := map[string]string{}
	for name, policy := range map[string]string{
		"empty":               ``,
		"default":             `default: 11`,
		"values":              `default: 1, validValues: [1, 2]`,
		"values, no default":  `validValues: [1]`,
		"values, default":     `default: 3, validValues: [1, 2]`,
		"ten values":          `default: 1, validValues: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`,
		"eleven values":       `default: 1, validValues: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]`,
		"values in disorder":  `default: 1, validValues: [2, 1]`,
		"value twice":         `default: 1, validValues: [1, 1]`,
		"value in two forms":  `default: 1, validValues: [1, 1000m]`,
		"value too large":     `default: 1, validValues: [1, 11]`,
		"fraction of values":  `default: 1500m, validValues: [500m, 1500m]`,
		"range":               `default: 1, validRange: {min: 1}`,
		"range, no default":   `validRange: {min: 1}`,
		"range and values":    `default: 1, validRange: {min: 1}, validValues: [1]`,
		"no min":              `default: 1, validRange: {max: 1}`,
		"min too large":       `default: 11, validRange: {min: 11}`,
		"max too large":       `default: 1, validRange: {min: 1, max: 11}`,
		"max below min":       `default: 2, validRange: {min: 2, max: 1}`,
		"default below min":   `default: 1, validRange: {min: 2}`,
		"default above max":   `default: 3, validRange: {min: 1, max: 2}`,
		"step":                `default: 4, validRange: {min: 1, max: 10, step: 3}`,
		"step too large":      `default: 1, validRange: {min: 1, step: 10}`,
		"step, default":       `default: 3, validRange: {min: 1, max: 10, step: 3}`,
		"step, max":           `default: 4, validRange: {min: 1, max: 9, step: 3}`,
		"step of a fraction":  `default: 1500m, validRange: {min: 500m, max: 2, step: 500m}`,
		"range of a fraction": `default: 1500m, validRange: {min: 500m, max: 2500m}`,
	} {
		policies[name] = `allowMultipleAllocations: true, capacity: {m: {value: 10, requestPolicy: {` + policy + `}}}`
	}
	policies["of a device for one"] = `capacity: {m: {value: 10, requestPolicy: {default: 1}}}`
	policies["said to be for one"] = `allowMultipleAllocations: false, capacity: {m: {value: 10, requestPolicy: {}}}`
	cases := deviceCases("policy", 0, policies)
	fraction := map[string]string{
		"close values":     `default: 1500m, validValues: [1200m, 1500m]`,
		"step":             `default: 2600m, validRange: {min: 100m, step: 2500m}`,
		"smallest of all":  `default: 1500m, validRange: {min: 1u}`,
		"step of a thou":   `default: 1001m, validRange: {min: 1, step: 1m}`,
		"step and default": `default: 1600m, validRange: {min: 500m, max: 2, step: 500m}`,
		"step of nothing":  `default: 1, validRange: {min: 1, step: 0}`,
		"step back":        `default: 1, validRange: {min: 1, step: -1}`,
		"below zero":       `default: 1, validRange: {min: -1, step: 1}`,
		"beyond 64 bits":   `default: 1, validRange: {min: 1, max: 1e19, step: 1}`,
	}
	for name, policy := range fraction {
		value := "10"
		if name == "beyond 64 bits" {
			value = "1e20"
		}
		cases["policy, fraction "+name] = fieldCase{spec: `devices: [{name: gpu, allowMultipleAllocations: true, capacity: {m: {value: ` + value + `, requestPolicy: {` + policy + `}}}}]`, since: 37}
	}
	const rounds = "without the gate, as by default, the API server rounds all to integers and refuses it"
	for _, name := range []string{"close values", "step"} {
		c := cases["policy, fraction "+name]
		c.stricter = rounds
		cases["policy, fraction "+name] = c
	}
	return cases
}

func counterCases() map[string]fieldCase {
	const m = `counters: {m: {value: 1}}`
	cases := deviceCases("consumes", 35, map[string]string{
		"of one":          `consumesCounters: [{counterSet: a, ` + m + `}]`,
		"of two":          `consumesCounters: [{counterSet: a, ` + m + `}, {counterSet: b, ` + m + `}]`,
		"of three":        `consumesCounters: [{counterSet: a, ` + m + `}, {counterSet: b, ` + m + `}, {counterSet: c, ` + m + `}]`,
		"of one twice":    `consumesCounters: [{counterSet: a, ` + m + `}, {counterSet: a, ` + m + `}]`,
		"of no name":      `consumesCounters: [{` + m + `}]`,
		"of a bad name":   `consumesCounters: [{counterSet: A, ` + m + `}]`,
		"nothing":         `consumesCounters: [{counterSet: a}]`,
		"32 counters":     `consumesCounters: [{counterSet: a, counters: {` + numbers(32, "c%d: {value: 1}") + `}}]`,
		"33 counters":     `consumesCounters: [{counterSet: a, counters: {` + numbers(33, "c%d: {value: 1}") + `}}]`,
		"a bad counter":   `consumesCounters: [{counterSet: a, counters: {M: {value: 1}}}]`,
		"none of a thing": `consumesCounters: [{counterSet: a, counters: {m: {value: 0}}}]`,
	})
	maps.Copy(cases, deviceCases("groups", 37, map[string]string{
		"two":   `consumesCounters: [{counterSet: a, ` + m + `, compatibilityGroups: [a, b]}]`,
		"three": `consumesCounters: [{counterSet: a, ` + m + `, compatibilityGroups: [a, b, c]}]`,
		"twice": `consumesCounters: [{counterSet: a, ` + m + `, compatibilityGroups: [a, a]}]`,
		"bad":   `consumesCounters: [{counterSet: a, ` + m + `, compatibilityGroups: [A]}]`,
		"empty": `consumesCounters: [{counterSet: a, ` + m + `, compatibilityGroups: []}]`,
	}))
	for name, set := range map[string]string{
		"one":             `{name: a, ` + m + `}`,
		"eight":           numbers(8, `{name: a%d, `+m+`}`),
		"twice":           `{name: a, ` + m + `}, {name: a, ` + m + `}`,
		"without a name":  `{` + m + `}`,
		"of a bad name":   `{name: A.b, ` + m + `}`,
		"of a long name":  `{name: ` + strings.Repeat("a", 63) + `, ` + m + `}`,
		"of 64 letters":   `{name: ` + strings.Repeat("a", 64) + `, ` + m + `}`,
		"of nothing":      `{name: a}`,
		"of 32":           `{name: a, counters: {` + numbers(32, "c%d: {value: 1}") + `}}`,
		"of 33":           `{name: a, counters: {` + numbers(33, "c%d: {value: 1}") + `}}`,
		"of a bad one":    `{name: a, counters: {m_1: {value: 1}}}`,
		"of nothing left": `{name: a, counters: {m: {value: 0}}}`,
	} {
		cases["counter set "+name] = fieldCase{spec: "sharedCounters: [" + set + "]", since: 35}
	}
	const negative = "there can be no less than nothing of a thing"
	cases["counter set of less"] = fieldCase{"sharedCounters: [{name: a, counters: {m: {value: -1}}}]", 35, negative}
	cases["consumes less"] = fieldCase{"devices: [{name: gpu, consumesCounters: [{counterSet: a, counters: {m: {value: -1}}}]}]", 35, negative}
	return cases
}

func nodeCases() map[string]fieldCase {
	const device = "devices: [{name: gpu}]"
	cases := map[string]fieldCase{
		"nodes all":          {spec: "allNodes: true\n" + device},
		"nodes none":         {spec: "allNodes: false\n" + device},
		"nodes all and some": {spec: "allNodes: true\nnodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}\n" + device},
	}
	for name, terms := range map[string]string{
		"one term":            `{matchExpressions: [{key: a, operator: Exists}]}`,
		"no term":             ``,
		"two terms":           `{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}`,
		"unknown operator":    `{matchExpressions: [{key: a, operator: Near}]}`,
		"bad key":             `{matchExpressions: [{key: a b, operator: Exists}]}`,
		"bad prefix":          `{matchExpressions: [{key: A.b/c, operator: Exists}]}`,
		"bad value":           `{matchExpressions: [{key: a, operator: In, values: [a b]}]}`,
		"empty value":         `{matchExpressions: [{key: a, operator: In, values: [""]}]}`,
		"In of nothing":       `{matchExpressions: [{key: a, operator: In}]}`,
		"Exists of something": `{matchExpressions: [{key: a, operator: Exists, values: [a]}]}`,
		"Gt of two":           `{matchExpressions: [{key: a, operator: Gt, values: ["1", "2"]}]}`,
		"Gt":                  `{matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}`,
		"name":                `{matchFields: [{key: metadata.name, operator: In, values: [a]}]}`,
		"two names":           `{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}`,
		"bad name":            `{matchFields: [{key: metadata.name, operator: In, values: [A]}]}`,
		"other field":         `{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}`,
		"operator of fields":  `{matchFields: [{key: metadata.name, operator: Exists}]}`,
	} {
		cases["nodes, "+name] = fieldCase{spec: "nodeSelector: {nodeSelectorTerms: [" + terms + "]}\n" + device}
	}
	cases["nodes, Gt of text"] = fieldCase{"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [a]}]}]}\n" + device, 0, "the scheduler would take the slice for broken"}
	cases["nodes, term of nothing"] = fieldCase{"nodeSelector: {nodeSelectorTerms: [{}]}\n" + device, 0, "it selects no node"}
	const one = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}`
	for name, fields := range map[string]string{
		"by name":     `, nodeName: a`,
		"by bad name": `, nodeName: A`,
		"selector":    `, ` + one,
		"all":         `, allNodes: true`,
		"not all":     `, allNodes: false`,
		"none":        ``,
		"two":         `, nodeName: a, allNodes: true`,
		"operator":    `, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}`,
	} {
		cases["device for nodes, "+name] = fieldCase{spec: "perDeviceNodeSelection: true\ndevices: [{name: gpu" + fields + "}]"}
		if fields != "" {
			cases["device for others, "+name] = fieldCase{spec: "allNodes: true\ndevices: [{name: gpu" + fields + "}]"}
		}
	}
	const two = `nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}]}`
	cases["device for nodes, two terms"] = fieldCase{"perDeviceNodeSelection: true\ndevices: [{name: gpu, " + two + "}]", 0, "the API says that there must be one"}
	return cases
}

// alphaCases are about fields that only Kubernetes 1.37 has.
func alphaCases() map[string]fieldCase {
	cases := deviceCases("node's own", 37, map[string]string{
		"count":            `nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 500m}}}`,
		"count of nothing": `nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 0}}}`,
		"capacity":         `capacity: {c: {value: 1}}, nodeAllocatableResources: {memory: {mapping: {capacityKey: c, capacityMultiplier: 1}}}`,
		"no capacity":      `capacity: {c: {value: 1}}, nodeAllocatableResources: {memory: {mapping: {capacityKey: d, capacityMultiplier: 1}}}`,
		"empty capacity":   `capacity: {c: {value: 1}}, nodeAllocatableResources: {memory: {mapping: {capacityKey: "", capacityMultiplier: 1}}}`,
		"no multiplier":    `capacity: {c: {value: 1}}, nodeAllocatableResources: {memory: {mapping: {capacityKey: c}}}`,
		"both":             `capacity: {c: {value: 1}}, nodeAllocatableResources: {memory: {mapping: {capacityKey: c, capacityMultiplier: 1, deviceMultiplier: 1}}}`,
		"multiplier alone": `nodeAllocatableResources: {memory: {mapping: {capacityMultiplier: 1, deviceMultiplier: 1}}}`,
		"empty mapping":    `nodeAllocatableResources: {memory: {mapping: {}}}`,
		"nothing":          `nodeAllocatableResources: {memory: {}}`,
		"overhead":         `nodeAllocatableResources: {hugepages-2Mi: {overhead: {perPod: 0, perContainer: 1}}}`,
		"empty overhead":   `nodeAllocatableResources: {memory: {overhead: {}}}`,
		"less":             `nodeAllocatableResources: {memory: {overhead: {perPod: -1}}}`,
		"less, container":  `nodeAllocatableResources: {memory: {overhead: {perContainer: -1}}}`,
		"storage":          `nodeAllocatableResources: {ephemeral-storage: {overhead: {perPod: 1}}}`,
		"extended":         `nodeAllocatableResources: {example.com/gpu: {overhead: {perPod: 1}}}`,
		"empty name":       `nodeAllocatableResources: {"": {overhead: {perPod: 1}}}`,
	})
	const consumes = `consumesCounters: [{counterSet: a, counters: {m: {value: 1}}}]`
	for name, spec := range map[string]string{
		"string":            "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, attributes: {type: {string: a}}, " + consumes + "}]",
		"qualified":         "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, attributes: {" + harness.Driver + "/type: {string: a}, type: {int: 1}}, " + consumes + "}]",
		"of another domain": "partitionTypeAttribute: example.com/type\ndevices: [{name: gpu, attributes: {example.com/type: {string: a}}, " + consumes + "}]",
		"bare elsewhere":    "partitionTypeAttribute: example.com/type\ndevices: [{name: gpu, attributes: {type: {string: a}}, " + consumes + "}]",
		"int":               "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, attributes: {type: {int: 1}}, " + consumes + "}]",
		"list":              "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, attributes: {type: {strings: [a]}}, " + consumes + "}]",
		"missing":           "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, " + consumes + "}]",
		"needed by one":     "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: nic}, {name: gpu, attributes: {type: {string: a}}, " + consumes + "}]",
		"needed by none":    "partitionTypeAttribute: " + harness.Driver + "/type\ndevices: [{name: gpu, attributes: {type: {string: a}}}]",
		"bare":              "partitionTypeAttribute: type\ndevices: [{name: gpu, attributes: {type: {string: a}}, " + consumes + "}]",
		"in capitals":       "partitionTypeAttribute: A.b/type\ndevices: [{name: gpu, attributes: {A.b/type: {string: a}}, " + consumes + "}]",
		"empty":             "partitionTypeAttribute: \"\"\ndevices: [{name: gpu, attributes: {type: {string: a}}, " + consumes + "}]",
	} {
		cases["partition type "+name] = fieldCase{spec: spec, since: 37}
	}
	for name, list := range map[string]string{
		"all": `"*"`, "both": `NodePrepareResources, NodeUnprepareResources`, "prepare": `NodePrepareResources`, "unprepare": `NodeUnprepareResources`,
		"prepare and all": `NodePrepareResources, "*"`, "twice": `"*", "*"`, "unknown": `Prepare`, "empty": `""`,
	} {
		cases["skip "+name] = fieldCase{spec: "skipNodeOperations: [" + list + "]\ndevices: [{name: gpu}]", since: 37}
	}
	return cases
}
