package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
)

// many makes a flow list or object of n items.
func many(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

// rule is one rule at its border: what is just good, and what is just bad.
type rule struct {
	good, bad string
	// path is where the bad one is wrong, and want is in what is said of it.
	path, want string
}

// device is a spec with one device of those fields.
func deviceSpec(fields string) string {
	return "devices: [{name: gpu, " + fields + "}]"
}

func requireRules(t *testing.T, rules map[string]rule) {
	t.Helper()
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, validate(t, rule.good))
			requireProblems(t, map[string]string{rule.path: rule.want}, validate(t, rule.bad))
		})
	}
}

func validate(t *testing.T, spec string) field.ErrorList {
	t.Helper()
	template := validTemplate()
	template.Spec.PoolName = ""
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &template.Spec), spec)
	defaults.SetResourcePoolTemplate(template)
	return ValidateResourcePoolTemplate(template)
}

func TestRulesOfAttributes(t *testing.T) {
	t.Parallel()
	const values = "attributes: {a: [%s], b: [%s]}"
	requireRules(t, map[string]rule{
		"values": {
			deviceSpec(fmt.Sprintf(values, many(24, "%d"), many(24, "%d"))),
			deviceSpec(fmt.Sprintf(values, many(24, "%d"), many(25, "%d"))),
			"spec.devices[0]", "49: values of attributes must be at most 48 in all",
		},
		"32 in a partition": {
			deviceSpec("counters: {m: 1}, attributes: {uuid: a, " + many(28, "a%d: 1") + "}, partitions: [{name: p, consumes: {m: 1}, attributes: {a0: 2, b: 1}, capacity: {m: 1}}]"),
			deviceSpec("counters: {m: 1}, attributes: {uuid: a, " + many(29, "a%d: 1") + "}, partitions: [{name: p, consumes: {m: 1}, attributes: {a0: 2, b: 1}, capacity: {m: 1}}]"),
			"spec.devices[0].partitions[0]", "33: attributes and capacities must be at most 32 together, those of the device included",
		},
		"uuid that is given": {
			deviceSpec("counters: {m: 1}, attributes: {uuid: a, " + many(30, "a%d: 1") + "}, partitions: [{name: p, consumes: {m: 1}, attributes: {uuid: b, parentUUID: c}}]"),
			deviceSpec("counters: {m: 1}, attributes: {uuid: a, " + many(31, "a%d: 1") + "}, partitions: [{name: p, consumes: {m: 1}, attributes: {uuid: b, parentUUID: c}}]"),
			"spec.devices[0].partitions[0]", "33",
		},
		"values in a partition": {
			deviceSpec("counters: {m: 1}, attributes: {a: [" + many(40, "%d") + "]}, partitions: [{name: p, consumes: {m: 1}, attributes: {b: [" + many(8, "%d") + "]}}]"),
			deviceSpec("counters: {m: 1}, attributes: {a: [" + many(40, "%d") + "]}, partitions: [{name: p, consumes: {m: 1}, attributes: {b: [" + many(9, "%d") + "]}}]"),
			"spec.devices[0].partitions[0]", "values of attributes must be at most 48 in all, each element of a list counted, those of the device included",
		},
		"attribute of a partition": {
			deviceSpec("counters: {m: 1}, partitions: [{name: p, consumes: {m: 1}, attributes: {v: {version: 1.0.0}}}]"),
			deviceSpec(`counters: {m: 1}, partitions: [{name: p, consumes: {m: 1}, attributes: {v: {version: "1.0"}}}]`),
			"spec.devices[0].partitions[0].attributes[v]", `use "1.0.0"`,
		},
	})
}

func TestRulesOfPolicies(t *testing.T) {
	t.Parallel()
	policy := func(policy string) string {
		return deviceSpec("allowMultipleAllocations: true, capacity: {m: {value: 10, requestPolicy: {" + policy + "}}}")
	}
	const path = "spec.devices[0].capacity[m].requestPolicy"
	requireRules(t, map[string]rule{
		"shared":             {policy("default: 1"), deviceSpec("capacity: {m: {value: 10, requestPolicy: {default: 1}}}"), path, "only with allowMultipleAllocations: true"},
		"shared partition":   {deviceSpec("allowMultipleAllocations: true, counters: {m: 1}, partitions: [{name: p, consumes: {m: 1}, capacity: {m: {value: 1, requestPolicy: {}}}}]"), deviceSpec("counters: {m: 1}, partitions: [{name: p, consumes: {m: 1}, capacity: {m: {value: 1, requestPolicy: {}}}}]"), "spec.devices[0].partitions[0].capacity[m].requestPolicy", "only with"},
		"one of two":         {policy("default: 1, validValues: [], validRange: {min: 1}"), policy("default: 1, validValues: [1], validRange: {min: 1}"), path, "exclude each other"},
		"default of values":  {policy("default: 1, validValues: [1]"), policy("validValues: [1]"), path + ".default", "what a request takes"},
		"default of a range": {policy("default: 1, validRange: {min: 1}"), policy("validRange: {min: 1}"), path + ".default", "what a request takes"},
		"ten values":         {policy("default: 1, validValues: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"), policy("default: 1, validValues: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"), path + ".validValues", "at most 10"},
		"order":              {policy("default: 1, validValues: [1, 2]"), policy("default: 1, validValues: [2, 1]"), path + ".validValues[1]", "sort them"},
		"unlike":             {policy("default: 1, validValues: [1, 2]"), policy("default: 1, validValues: [1, 1000m]"), path + ".validValues[1]", "Duplicate"},
		"unlike integers":    {policy("default: 1500m, validValues: [1, 1500m]"), policy("default: 1500m, validValues: [1200m, 1500m]"), path + ".validValues[1]", "rounded up to integers"},
		"within capacity":    {policy("default: 1, validValues: [1, 10]"), policy("default: 1, validValues: [1, 11]"), path + ".validValues[1]", "at most the capacity, 10"},
		"default in values":  {policy("default: 1, validValues: [1, 2]"), policy("default: 3, validValues: [1, 2]"), path + ".validValues", "must include the default"},
		"min":                {policy("default: 10, validRange: {min: 10}"), policy("default: 11, validRange: {min: 11}"), path + ".validRange.min", "at most the capacity"},
		"min is needed":      {policy("default: 1, validRange: {min: 0}"), policy("default: 1, validRange: {max: 2}"), path + ".validRange.min", "the least"},
		"default at min":     {policy("default: 2, validRange: {min: 2}"), policy("default: 1, validRange: {min: 2}"), path + ".default", "at least min, 2"},
		"max":                {policy("default: 2, validRange: {min: 2, max: 10}"), policy("default: 2, validRange: {min: 2, max: 11}"), path + ".validRange.max", "at most the capacity"},
		"default at max":     {policy("default: 5, validRange: {min: 2, max: 5}"), policy("default: 6, validRange: {min: 2, max: 5}"), path + ".default", "at most max, 5"},
		"step":               {policy("default: 2, validRange: {min: 2, step: 8}"), policy("default: 2, validRange: {min: 2, step: 9}"), path + ".validRange.step", "min and one step, 11, must be at most the capacity, 10"},
		"step of 0":          {policy("default: 2, validRange: {min: 2, step: 1}"), policy("default: 2, validRange: {min: 2, step: 0}"), path + ".validRange.step", "more than 0"},
		"step to default":    {policy("default: 8, validRange: {min: 2, step: 3}"), policy("default: 7, validRange: {min: 2, step: 3}"), path + ".default", "must be some steps of 3 from min, 2"},
		"step to max":        {policy("default: 2, validRange: {min: 2, max: 8, step: 3}"), policy("default: 2, validRange: {min: 2, max: 9, step: 3}"), path + ".validRange.max", "must be some steps"},
		"step of fractions":  {policy("default: 1500m, validRange: {min: 500m, max: 2, step: 500m}"), policy("default: 1600m, validRange: {min: 500m, max: 2, step: 500m}"), path + ".default", "must be some steps of 500m from min, 500m"},
		"fraction, integers": {policy("default: 5, validRange: {min: 500m, step: 1500m}"), policy("default: 2600m, validRange: {min: 100m, step: 2500m}"), path + ".default", "also when all are rounded up to integers"},
		"thousandths":        {policy("default: 1500m, validRange: {min: 1m}"), policy("default: 1500m, validRange: {min: 1u}"), path + ".validRange.min", "counted in thousandths"},
		"step of 64 bits":    {policy("default: 9, validRange: {min: 1, step: 1}"), strings.Replace(policy("default: 1, validRange: {min: 1, max: 1e19, step: 1}"), "value: 10,", "value: 1e20,", 1), path + ".validRange.max", "64 bits"},
		"negative":           {policy("default: 0, validRange: {min: 0, step: 1}"), policy("default: 0, validRange: {min: -1, step: 1}"), path + ".validRange.min", "must not be less than 0"},
	})
}

func TestRulesOfNodes(t *testing.T) {
	t.Parallel()
	const one = "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}"
	const two = "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: a, operator: Exists}]}]}"
	each := func(fields string) string {
		return "sharedWith: {perDeviceNodeSelection: true}\n" + deviceSpec(fields)
	}
	shared := func(how string) string { return "sharedWith: {" + how + "}\n" + deviceSpec("") }
	requirement := func(r string) string {
		return shared("nodeSelector: {nodeSelectorTerms: [{" + r + "}]}")
	}
	const term = "spec.sharedWith.nodeSelector.nodeSelectorTerms[0]"
	requireRules(t, map[string]rule{
		"exactly one":         {shared("allNodes: true"), shared("allNodes: true, " + one), "spec.sharedWith", "exactly one"},
		"at least one":        {shared(one), shared("allNodes: false"), "spec.sharedWith", "exactly one"},
		"one term":            {shared(one), shared(two), "spec.sharedWith.nodeSelector.nodeSelectorTerms", "exactly one term"},
		"two terms of nodes":  {two + "\n" + deviceSpec(""), "nodeSelector: {nodeSelectorTerms: []}\n" + deviceSpec(""), "spec.nodeSelector.nodeSelectorTerms", "leave nodeSelector out"},
		"term of nothing":     {requirement("matchExpressions: [{key: a, operator: DoesNotExist}]"), requirement("matchExpressions: []"), term, "selects no node"},
		"pool name":           {shared("allNodes: true") + "\npoolName: a", shared("allNodes: true") + "\npoolName: 'a{{ 1 }}'", "spec.poolName", "must not be a template"},
		"device's node":       {each("nodeName: node-1"), each("nodeName: Node_1"), "spec.devices[0].nodeName", `use "node-1"`},
		"device's template":   {each("nodeName: 'N{{ 1 }}'"), each("nodeName: ''"), "spec.devices[0]", "exactly one of nodeName, nodeSelector and allNodes"},
		"device's selector":   {each(one), each(two), "spec.devices[0].nodeSelector.nodeSelectorTerms", "exactly one term"},
		"device's all nodes":  {each("allNodes: true"), each("allNodes: false"), "spec.devices[0].allNodes", "must be true, or left out"},
		"device's two":        {each("allNodes: true"), each("allNodes: true, nodeName: n"), "spec.devices[0]", "exactly one"},
		"not of a device":     {deviceSpec(""), deviceSpec("allNodes: true"), "spec.devices[0].allNodes", "only with sharedWith.perDeviceNodeSelection"},
		"not with all nodes":  {shared("allNodes: true"), "sharedWith: {allNodes: true}\n" + deviceSpec(one), "spec.devices[0].nodeSelector", "only with"},
		"key":                 {requirement("matchExpressions: [{key: example.com/a_b, operator: Exists}]"), requirement("matchExpressions: [{key: example_com/a, operator: Exists}]"), term + ".matchExpressions[0].key", `use "example-com/a"`},
		"value":               {requirement("matchExpressions: [{key: a, operator: In, values: ['', a_b]}]"), requirement("matchExpressions: [{key: a, operator: NotIn, values: [a b]}]"), term + ".matchExpressions[0].values[0]", `use "a-b"`},
		"values of Exists":    {requirement("matchExpressions: [{key: a, operator: Exists, values: []}]"), requirement("matchExpressions: [{key: a, operator: DoesNotExist, values: [a]}]"), term + ".matchExpressions[0].values", "there are none"},
		"values of In":        {requirement("matchExpressions: [{key: a, operator: In, values: [a]}]"), requirement("matchExpressions: [{key: a, operator: In}]"), term + ".matchExpressions[0].values", "at least one"},
		"value of Gt":         {requirement("matchExpressions: [{key: a, operator: Gt, values: ['1']}]"), requirement("matchExpressions: [{key: a, operator: Lt, values: [a]}]"), term + ".matchExpressions[0].values[0]", "must be an integer"},
		"values of Gt":        {requirement("matchExpressions: [{key: a, operator: Gt, values: ['1']}]"), requirement("matchExpressions: [{key: a, operator: Lt, values: ['1', '2']}]"), term + ".matchExpressions[0].values", "exactly one"},
		"field":               {requirement("matchFields: [{key: metadata.name, operator: In, values: [a]}]"), requirement("matchFields: [{key: metadata.uid, operator: In, values: [a]}]"), term + ".matchFields[0].key", `supported values: "metadata.name"`},
		"operator of a field": {requirement("matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]"), requirement("matchFields: [{key: metadata.name, operator: Gt, values: [a]}]"), term + ".matchFields[0].operator", "Unsupported"},
		"values of a field":   {requirement("matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]"), requirement("matchFields: [{key: metadata.name, operator: In, values: [a, b]}]"), term + ".matchFields[0].values", "exactly one"},
		"value of a field":    {requirement("matchFields: [{key: metadata.name, operator: NotIn, values: [a.b]}]"), requirement("matchFields: [{key: metadata.name, operator: In, values: [A]}]"), term + ".matchFields[0].values[0]", `use "a"`},
	})
}
