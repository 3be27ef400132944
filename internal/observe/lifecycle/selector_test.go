package lifecycle

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	kwoklifecycle "sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

type (
	selector        = kwokv1alpha1.StageSelector
	matchExpression = kwokv1alpha1.MatchExpression
)

var path = field.NewPath("spec", "publishWhen")

const readyStatus = `.status.conditions.[] | select( .type == "Ready" ) | .status`

func flat(key string, operator kwokv1alpha1.SelectorOperator, values ...string) matchExpression {
	return matchExpression{Key: key, Operator: operator, Values: values}
}

func jqOf(key string, operator kwokv1alpha1.SelectorOperator, values ...string) matchExpression {
	return matchExpression{JQ: &kwokv1alpha1.SelectorJQ{Key: key, Operator: operator, Values: values}}
}

func celOf(source string) matchExpression {
	return matchExpression{CEL: &kwokv1alpha1.ExpressionCEL{Expression: source}}
}

func matching(expressions ...matchExpression) *selector {
	return &selector{MatchExpressions: expressions}
}

// nodes differ in one thing each.
var nodes = map[string]*corev1.Node{
	"bare": {},
	"named": {ObjectMeta: metav1.ObjectMeta{
		Name:        "n1",
		UID:         "u1",
		Labels:      map[string]string{"pool": "a", "zone": "z1"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}},
	"ready": {
		ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{"pool": "a"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	},
	"not ready": {
		ObjectMeta: metav1.ObjectMeta{Name: "n3", Annotations: map[string]string{"kwok.x-k8s.io/node": "real"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Because"},
		}},
	},
	"cordoned": {
		ObjectMeta: metav1.ObjectMeta{Name: "n4", Labels: map[string]string{"pool": "b", "zone": ""}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Effect: corev1.TaintEffectNoExecute},
		}},
	},
}

var selectors = map[string]*selector{
	"empty":                  {},
	"labels":                 {MatchLabels: map[string]string{"pool": "a"}},
	"two labels":             {MatchLabels: map[string]string{"pool": "a", "zone": "z1"}},
	"empty label":            {MatchLabels: map[string]string{"zone": ""}},
	"annotations":            {MatchAnnotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
	"labels and annotations": {MatchLabels: map[string]string{"pool": "a"}, MatchAnnotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
	"empty list":             {MatchExpressions: []matchExpression{}},
	"flat In":                matching(flat(readyStatus, "In", "True")),
	"flat In several":        matching(flat(readyStatus, "In", "False", "Unknown")),
	"flat NotIn":             matching(flat(readyStatus, "NotIn", "True")),
	"flat Exists":            matching(flat(".metadata.labels.zone", "Exists")),
	"flat DoesNotExist":      matching(flat(".metadata.labels.zone", "DoesNotExist")),
	"jq In":                  matching(jqOf(readyStatus, "In", "True")),
	"jq Exists":              matching(jqOf(".spec.taints.[].key", "Exists")),
	"jq over a list":         matching(jqOf(".spec.taints.[].key", "In", "b")),
	"jq bool":                matching(jqOf(".spec.unschedulable", "In", "true")),
	"jq key with a slash":    matching(jqOf(`.metadata.annotations["kwok.x-k8s.io/node"]`, "In", "fake", "real")),
	"jq runtime error":       matching(jqOf(".metadata.name.nothing", "Exists")),
	"two expressions":        matching(jqOf(readyStatus, "Exists"), flat(".metadata.labels.pool", "In", "a")),
	"labels and expression":  {MatchLabels: map[string]string{"pool": "a"}, MatchExpressions: []matchExpression{jqOf(readyStatus, "In", "True")}},
	"cel":                    matching(celOf(`self.metadata.name == "n1"`)),
	"cel labels":             matching(celOf(`"pool" in self.metadata.labels && self.metadata.labels["pool"] == "a"`)),
	"cel bool field":         matching(celOf(`self.spec.unschedulable`)),
	"cel missing label":      matching(celOf(`self.metadata.labels["zone"] == "z1"`)),
	"cel index out of range": matching(celOf(`self.spec.podCIDRs[1] == "b"`)),
	"cel after jq":           matching(jqOf(readyStatus, "In", "True"), celOf(`self.metadata.name == "n2"`)),
	"jq that spares cel":     matching(jqOf(".metadata.labels.zone", "Exists"), celOf(`self.metadata.labels["zone"] == "z1"`)),
}

// TestMatchesAsKwok: for every selector and node the result is that of kwok's
// own pkg/utils/lifecycle, which plays the Stages. It runs alone: kwok's CEL
// must not compile in two goroutines at a time.
func TestMatchesAsKwok(t *testing.T) {
	for name, source := range selectors {
		for nodeName, node := range nodes {
			t.Run(name+" on "+nodeName, func(t *testing.T) {
				compiled, errs := NodeCEL.CompileSelector(source.DeepCopy(), path)
				require.Empty(t, errs)
				want, wantErr := matchesInKwok(t, source, node)
				got, err := compiled.Matches(t.Context(), NewObject(node))
				require.Equal(t, want, got)
				require.Equal(t, wantErr == nil, err == nil, "kwok: %v, here: %v", wantErr, err)
				if err != nil {
					require.ErrorContains(t, err, "evaluate spec.publishWhen: ")
				}
			})
		}
	}
}

func matchesInKwok(t *testing.T, source *selector, node *corev1.Node) (bool, error) {
	t.Helper()
	stage, err := internalversion.ConvertToInternalStage(&kwokv1alpha1.Stage{Spec: kwokv1alpha1.StageSpec{Selector: source.DeepCopy()}})
	require.NoError(t, err)
	stages, err := kwoklifecycle.NewLifecycle([]*internalversion.Stage{stage})
	require.NoError(t, err)
	event := &kwoklifecycle.Event{Labels: node.Labels, Annotations: node.Annotations, Data: node}
	possible, err := stages.ListAllPossible(t.Context(), event)
	return len(possible) > 0, err
}

// TestSelectorsTellNodesApart keeps the table above honest.
func TestSelectorsTellNodesApart(t *testing.T) {
	t.Parallel()
	for name, source := range selectors {
		compiled, errs := NodeCEL.CompileSelector(source, path)
		require.Empty(t, errs)
		got := map[string]bool{}
		for _, node := range nodes {
			matched, err := compiled.Matches(t.Context(), NewObject(node))
			switch {
			case err != nil:
				got["error"] = true
			default:
				got[strconv.FormatBool(matched)] = true
			}
		}
		switch name {
		case "empty", "empty list":
			require.Equal(t, map[string]bool{"true": true}, got, name)
		case "cel index out of range":
			require.Equal(t, map[string]bool{"error": true}, got, name)
		case "jq runtime error":
			require.Equal(t, map[string]bool{"false": true}, got, name)
		default:
			require.True(t, got["true"] && (got["false"] || got["error"]), "%s: %v", name, got)
		}
	}
}

func TestNilSelectorMatchesNothing(t *testing.T) {
	t.Parallel()
	var none *Selector
	for _, node := range nodes {
		matched, err := none.Matches(t.Context(), NewObject(node))
		require.NoError(t, err)
		require.False(t, matched)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	both := celOf("true")
	both.JQ = jqOf(".a", "Exists").JQ
	bothFlat := celOf("true")
	bothFlat.Key, bothFlat.Operator = ".a", "Exists"
	conditions := `self.status.conditions.exists(c, c.type == "Ready")`
	for name, test := range map[string]struct {
		given matchExpression
		// value is what the error shows of the expression, want its reason.
		value, want string
	}{
		"bad jq":              {jqOf(".status.conditions[", "Exists"), ".status.conditions[", "does not compile"},
		"bad flat jq":         {flat("select(", "Exists"), "select(", "does not compile"},
		"unknown jq function": {jqOf("nonsense(.a)", "Exists"), "nonsense(.a)", "function nonsense is not supported; there are all, any, "},
		"bad operator":        {jqOf(".a", "Equals", "b"), ".a", "Equals"},
		"no operator":         {flat(".a", ""), ".a", "does not compile"},
		"In of nothing":       {flat(".a", "In"), ".a", "does not compile"},
		"Exists of values":    {flat(".a", "Exists", "b"), ".a", "does not compile"},
		"bad cel":             {celOf("self.metadata.name =="), "self.metadata.name ==", "does not compile"},
		"cel of no field":     {celOf("self.metadata.nothing"), "self.metadata.nothing", "does not compile"},
		"cel of no variable":  {celOf("node.metadata.name == 'a'"), "node.metadata.name == 'a'", "does not compile"},
		// kwok declares Node to CEL, but no NodeCondition and no Taint.
		"cel of conditions": {celOf(conditions), conditions, "does not compile"},
		"empty cel":         {celOf(""), "", "does not compile"},
		"empty":             {matchExpression{}, "", "is empty: give cel, or jq, or key, operator and values"},
		"operator alone":    {flat("", "Exists"), "", "is empty"},
		"cel and jq":        {both, "true", "give either cel, or jq, or key"},
		"cel and flat":      {bothFlat, "true", "give either cel, or jq, or key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := matching(celOf("true"), test.given)
			_, errs := NodeCEL.CompileSelector(source, path)
			require.Len(t, errs, 1)
			require.Equal(t, "spec.publishWhen.matchExpressions[1]", errs[0].Field)
			require.Equal(t, test.value, errs[0].BadValue)
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

func TestCompileReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, errs := NodeCEL.CompileSelector(matching(jqOf("[", "Exists"), celOf("true"), celOf("=")), path)
	require.Len(t, errs, 2)
	require.Equal(t, "spec.publishWhen.matchExpressions[0]", errs[0].Field)
	require.Equal(t, "spec.publishWhen.matchExpressions[2]", errs[1].Field)
}

// TestSelectorIsShared runs one selector on one object from many workers, as
// the Publisher does, while others are compiled, as a new version of the
// ConfigMap does; the race detector watches.
func TestSelectorIsShared(t *testing.T) {
	t.Parallel()
	compiled, errs := NodeCEL.CompileSelector(matching(jqOf(readyStatus, "In", "True"), celOf(`self.metadata.name == "n2"`)), path)
	require.Empty(t, errs)
	object := NewObject(nodes["ready"])
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 20 {
				matched, err := compiled.Matches(t.Context(), object)
				if err != nil || !matched {
					t.Errorf("matched %v, err %v", matched, err)
				}
			}
		})
	}
	for _, source := range []string{`self.spec.podCIDR == "a"`, `self.status.phase == "a"`, `size(self.spec.podCIDRs) == 1`} {
		running.Go(func() {
			if _, errs := NodeCEL.CompileSelector(matching(celOf(source)), path); len(errs) > 0 {
				t.Error(errs)
			}
		})
	}
	running.Wait()
}

func TestNewObject(t *testing.T) {
	t.Parallel()
	object := NewObject(nodes["named"])
	require.Equal(t, "n1", object.GetName())
	first, err := object.Decoded()
	require.NoError(t, err)
	require.Equal(t, "u1", first.(map[string]any)["metadata"].(map[string]any)["uid"])
	first.(map[string]any)["mark"] = true
	second, err := object.Decoded()
	require.NoError(t, err)
	require.Contains(t, second, "mark", "the JSON is made once")
}

// FuzzCompile: no expression makes compiling or evaluation panic.
func FuzzCompile(f *testing.F) {
	for _, source := range selectors {
		for _, match := range source.MatchExpressions {
			switch {
			case match.CEL != nil:
				f.Add(match.CEL.Expression)
			case match.JQ != nil:
				f.Add(match.JQ.Key)
			default:
				f.Add(match.Key)
			}
		}
	}
	for _, source := range []string{`[., .] | [., .] | length`, `reduce .[] as $x (.; {a: ., b: .}) | type`, `"x" * 500000000 | length`, `.. | strings | test("^x+$")`} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, text string) {
		compiled, errs := NodeCEL.CompileSelector(matching(jqOf(text, "Exists"), celOf(text)), path)
		require.Len(t, compiled.requirements, 1-count(errs, "matchExpressions[0]"))
		require.Len(t, compiled.programs, 1-count(errs, "matchExpressions[1]"))
		_, _ = compiled.Matches(t.Context(), NewObject(nodes["not ready"]))
	})
}

func count(errs field.ErrorList, suffix string) int {
	return len(errs.Filter(func(err error) bool {
		problem, ok := errors.AsType[*field.Error](err)
		return !ok || !strings.HasSuffix(problem.Field, suffix)
	}))
}

// kwok finds out with the first Node, and no Stage of that Node plays any more.
func TestNoBoolIsRefused(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{"self.metadata.name", "1 + 1"} {
		_, errs := NodeCEL.CompileSelector(matching(celOf(expression)), field.NewPath("spec", "publishWhen"))
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0], "gives no bool")
		require.ErrorContains(t, errs[0], expression)
	}
}
