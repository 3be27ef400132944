package dashboards

import "testing"

// TestRealMetrics has a sidecar publish, prepare and fail on a real cluster, and
// looks at its metrics as Prometheus and Grafana do.
func TestRealMetrics(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSamples(t)
	s.scrape(t, w.process.URL)
	for number := range 2 {
		w.round(number)
		s.scrape(t, w.process.URL)
	}
	w.refuse()
	s.scrape(t, w.process.URL)

	t.Run("Queries", func(t *testing.T) { testQueries(t, s) })
	t.Run("Annotations", func(t *testing.T) { testAnnotations(t, s) })
	t.Run("Variables", func(t *testing.T) { testVariables(t, s) })
	t.Run("Shows", func(t *testing.T) { testShows(t, s) })
	t.Run("Alerts", func(t *testing.T) { testAlertsAreRaised(t, s) })
	t.Run("ConfigMap", func(t *testing.T) { testConfigMap(t, w) })
	t.Run("Operator", func(t *testing.T) { testOperator(t, w) })
}
