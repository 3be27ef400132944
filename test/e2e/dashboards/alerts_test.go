package dashboards

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// readAlerts reads the rules as the operator and Prometheus do.
func readAlerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	var rule monitoringv1.PrometheusRule
	require.NoError(t, yaml.UnmarshalStrict(read(t, path("prometheus-operator", "prometheus_rule.yaml")), &rule))
	groups, err := yaml.Marshal(rule.Spec)
	require.NoError(t, err)
	parsed, errs := rulefmt.Parse(groups, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	require.Empty(t, errs)
	require.Len(t, parsed.Groups, 1)
	return parsed.Groups[0].Rules
}

func nameOf(rule rulefmt.Rule) string { return rule.Alert }

func TestAlerts(t *testing.T) {
	t.Parallel()
	for _, rule := range readAlerts(t) {
		require.True(t, strings.HasPrefix(rule.Alert, "KwokDRA"), rule.Alert)
		require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		for _, annotation := range []string{"summary", "description", "action"} {
			require.NotEmpty(t, rule.Annotations[annotation], "%s has no %s", rule.Alert, annotation)
		}
	}
}

// testAlertsAreRaised has each expression of an alert find what has happened.
func testAlertsAreRaised(t *testing.T, s *samples) {
	forEach(t, readAlerts(t), nameOf, func(t *testing.T, rule rulefmt.Rule) {
		s.knows(t, rule.Expr)
		if rule.Alert != "KwokDRADown" {
			require.NotEmpty(t, s.query(t, rule.Expr, s.now), rule.Expr)
			return
		}
		require.Empty(t, s.query(t, rule.Expr, s.now), rule.Expr)
		require.NotEmpty(t, s.query(t, rule.Expr, s.now.Add(time.Hour)), rule.Expr)
	})
}

func alertOf(t *testing.T, rule rulefmt.Rule) *rules.AlertingRule {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
	require.NoError(t, err)
	return rules.NewAlertingRule(rule.Alert, expression, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
		labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.Default())
}

// requireAnnotations wants the texts of an alert to have all that they name, and
// returns the alert's name with the labels that are its own.
func requireAnnotations(t *testing.T, alert *rules.Alert) string {
	t.Helper()
	var own []string
	alert.Labels.Range(func(label labels.Label) {
		if !slices.Contains([]string{labels.AlertName, "job", "severity"}, label.Name) {
			own = append(own, fmt.Sprintf("%s=%q", label.Name, label.Value))
		}
	})
	alert.Annotations.Range(func(annotation labels.Label) {
		require.NotContains(t, annotation.Value, "<error")
		require.NotContains(t, annotation.Value, "<no value>")
		require.NotContains(t, annotation.Value, "{{")
	})
	name := alert.Labels.Get(labels.AlertName)
	if len(own) > 0 {
		name += "{" + strings.Join(own, ", ") + "}"
	}
	return name
}
