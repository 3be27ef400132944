package dashboards

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
)

// minutes is how long a scenario lasts.
const minutes = 40

// scenarios have metrics, a sample a minute, and say which alerts fire from which
// minute to which. kwok-dra is up unless they say otherwise.
var scenarios = map[string]struct {
	series string
	want   map[string]string
}{
	"nothing is wrong": {`
		kwok_dra_config_last_reload_successful{carrier="f"} 1x40
		kwok_dra_publish_failures_total{cause="api"} 3x40
		kwok_dra_publish_failures_total{cause="template"} 0x40
		kwok_dra_prepare_failures_total{reason="api"} 3x40
		kwok_dra_incomplete_pools{driver="d"} 0x40`, map[string]string{}},
	"down": {`up{job="kwok-dra"} 1x9 0x19 1x10`, map[string]string{"KwokDRADown": "15-29"}},
	"gone": {`up{job="kwok-dra"} 1x9 stale`, map[string]string{"KwokDRADown": "15-40"}},
	"of two one is down": {`
		up{job="kwok-dra", pod="a"} 1x40
		up{job="kwok-dra", pod="b"} 0x40`, map[string]string{}},
	"down for a moment": {`up{job="kwok-dra"} 1x9 0x3 1x30`, map[string]string{}},
	"other jobs do not count": {`
		up{job="kwok-dra"} 0x40
		up{job="other"} 1x40`, map[string]string{"KwokDRADown": "5-40"}},
	"refused configuration": {
		`kwok_dra_config_last_reload_successful{carrier="ConfigMap kube-system/kwok-dra"} 1x4 0x9 1x30`,
		map[string]string{`KwokDRAConfigurationRefused{carrier="ConfigMap kube-system/kwok-dra"}`: "6-14"},
	},
	"the API server refuses": {
		`kwok_dra_publish_failures_total{cause="api"} 0x4 1+1x14 15x30`,
		map[string]string{`KwokDRAPublishFailing{cause="api"}`: "15-22"},
	},
	"the API server restarts": {`kwok_dra_publish_failures_total{cause="api"} 0x4 50+50x2 150x40`, map[string]string{}},
	"a first mistake in a template": {
		`kwok_dra_publish_failures_total{cause="template"} _x5 4x40`,
		map[string]string{`KwokDRAPublishRefused{cause="template"}`: "5-19"},
	},
	"another mistake in an annotation": {
		`kwok_dra_publish_failures_total{cause="annotation"} 4x19 5x30`,
		map[string]string{`KwokDRAPublishRefused{cause="annotation"}`: "0-14 20-33"},
	},
	"preparing fails": {
		`
		kwok_dra_prepare_failures_total{reason="not_reserved"} 0x4 1+1x40
		kwok_dra_prepare_failures_total{reason="api"} 7x40`,
		map[string]string{`KwokDRAPrepareFailing{reason="not_reserved"}`: "15-40"},
	},
	"preparing fails once":          {`kwok_dra_prepare_failures_total{reason="not_reserved"} 0x4 1x40`, map[string]string{}},
	"preparing fails as it is told": {`kwok_dra_prepare_failures_total{reason="simulated"} 0+9x40`, map[string]string{}},
	"a pool lacks slices": {`
		kwok_dra_incomplete_pools{driver="a"} 0x4 2x9 0x40
		kwok_dra_incomplete_pools{driver="b"} 0x40`, map[string]string{`KwokDRAPoolsIncomplete{driver="a"}`: "10-14"}},
	"pools change":  {`kwok_dra_incomplete_pools{driver="a"} 0x4 1x4 0x4 1x4 0x40`, map[string]string{}},
	"a gate is off": {`kwok_dra_dropped_fields{template="t", field="taints"} _x5 1x9 stale`, map[string]string{`KwokDRAFieldsDropped{field="taints", template="t"}`: "5-14"}},
}

func TestAlertScenarios(t *testing.T) {
	t.Parallel()
	for name, test := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, play(t, test.series))
		})
	}
}

// play returns the minutes at which alerts fire.
func play(t *testing.T, series string) map[string]string {
	t.Helper()
	if !strings.Contains(series, "up{") {
		series += "\n" + `up{job="kwok-dra"} 1x40`
	}
	storage := promqltest.LoadedStorage(t, "load 1m\n"+indent(series))
	query := rules.EngineQueryFunc(newEngine(t), storage)
	fires := map[string][]int{}
	for _, rule := range readAlerts(t) {
		alert := alertOf(t, rule)
		for minute := range minutes + 1 {
			_, err := alert.Eval(t.Context(), 0, time.Unix(0, 0).Add(time.Duration(minute)*time.Minute), query, &url.URL{}, 0)
			require.NoError(t, err)
			for _, name := range firing(t, alert) {
				fires[name] = append(fires[name], minute)
			}
		}
	}
	times := map[string]string{}
	for name, at := range fires {
		times[name] = spans(at)
	}
	return times
}

// firing names the alerts of a rule that fire.
func firing(t *testing.T, rule *rules.AlertingRule) []string {
	t.Helper()
	var names []string
	for _, alert := range rule.ActiveAlerts() {
		if alert.State == rules.StateFiring {
			names = append(names, requireAnnotations(t, alert))
		}
	}
	return names
}

// spans writes 1, 2, 3, 7 as 1-3 7-7.
func spans(at []int) string {
	var text []string
	for len(at) > 0 {
		length := 1
		for length < len(at) && at[length] == at[0]+length {
			length++
		}
		text = append(text, fmt.Sprintf("%d-%d", at[0], at[length-1]))
		at = at[length:]
	}
	return strings.Join(text, " ")
}

func indent(series string) string {
	var lines []string
	for line := range strings.Lines(series) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, "  "+line)
		}
	}
	return strings.Join(lines, "\n")
}
