package dashboards

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/require"
)

// annotation is what happened, as a mark on all panels.
type annotation struct {
	Name, Expr, Step, IconColor, TitleFormat, TextFormat string

	Enable, UseValueForTime bool
	Datasource              datasource
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	for _, a := range readDashboard(t).Annotations.List {
		require.Equal(t, chosen, a.Datasource, a.Name)
		require.Equal(t, a.Name, a.TitleFormat)
		require.True(t, a.Enable, a.Name)
		require.NotEmpty(t, a.IconColor, a.Name)
		step, err := time.ParseDuration(a.Step)
		require.NoError(t, err, a.Name)
		require.Equal(t, time.Minute, step, "fill has no other range")
	}
}

// TestAnnotationScenarios has a sample each 15 seconds, and says in which minutes which
// annotations are shown, with which texts.
func TestAnnotationScenarios(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		series string
		want   map[string]string
	}{
		"nothing happens": {`
			kwok_dra_config_refused_total{job="kwok-dra", carrier="files"} 3x40
			kwok_dra_device_states{job="kwok-dra", driver="d", state="free"} 0+9x40
			kwok_dra_device_states{job="kwok-dra", driver="d", state="tainted"} 8x40
			kwok_dra_device_states{job="kwok-dra", driver="d", state="failing"} 1x40
			kwok_dra_devices{job="kwok-dra", driver="d"} 0+8x40`, map[string]string{}},
		"refused": {
			`kwok_dra_config_refused_total{job="kwok-dra", carrier="files"} 0x9 1x30`,
			map[string]string{"Configuration refused files": "3-3"},
		},
		"of two drivers one is tainted": {`
			kwok_dra_device_states{job="kwok-dra", driver="d", state="tainted"} 0x9 4x8 0x20
			kwok_dra_device_states{job="kwok-dra", driver="e", state="tainted"} 2x40`, map[string]string{"Devices tainted d": "3-3"}},
		"of two replicas both show it": {`
			kwok_dra_device_states{job="kwok-dra", instance="1", driver="d", state="failing"} 0x9 4x30
			kwok_dra_device_states{job="kwok-dra", instance="2", driver="d", state="failing"} 0x9 4x30`, map[string]string{"Devices failing d": "3-3"}},
		"gone": {`kwok_dra_devices{job="kwok-dra", driver="d"} 80x9 72x30`, map[string]string{"Devices gone d": "3-3"}},
		"started": {
			`process_start_time_seconds{job="kwok-dra", instance="10.0.0.1:10246"} _x20 300x20`,
			map[string]string{"kwok-dra started 10.0.0.1:10246": "5-5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, annotate(t, test.series))
		})
	}
}

// annotate returns the minutes of annotations, which are as Grafana shows them.
func annotate(t *testing.T, series string) map[string]string {
	t.Helper()
	s := &samples{storage: promqltest.LoadedStorage(t, "load 15s\n"+indent(series)), engine: newEngine(t)}
	at := map[string][]int{}
	for _, a := range readDashboard(t).Annotations.List {
		for minute := range 11 {
			for _, sample := range s.query(t, fill(a.Expr, ".*"), time.Unix(int64(60*minute), 0)) {
				text := a.TitleFormat + " " + legend(a.TextFormat, sample.Metric)
				if shown, is := a.minute(minute, sample.F); is && !slices.Contains(at[text], shown) {
					at[text] = append(at[text], shown)
				}
			}
		}
	}
	times := map[string]string{}
	for text, minutes := range at {
		times[text] = spans(minutes)
	}
	return times
}

// minute is where a value that is found in a minute is shown, if it is.
func (a *annotation) minute(found int, value float64) (at int, shown bool) {
	if a.UseValueForTime {
		return int(time.UnixMilli(int64(value)).Unix() / 60), true
	}
	return found, value > 0
}

// testAnnotations has the annotations find what has happened.
func testAnnotations(t *testing.T, s *samples) {
	forEach(t, readDashboard(t).Annotations.List, func(a annotation) string { return a.Name }, func(t *testing.T, a annotation) {
		expression := fill(a.Expr, ".*")
		s.knows(t, expression)
		for _, sample := range s.query(t, expression, s.now) {
			require.NotEmpty(t, legend(a.TextFormat, sample.Metric), expression)
		}
	})
}
