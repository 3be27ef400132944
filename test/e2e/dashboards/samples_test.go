package dashboards

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

// interval is the time between two scrapes, by the clock of the samples: the
// test itself does not wait for it.
const interval = 15 * time.Second

// samples are what a Prometheus has scraped of kwok-dra.
type samples struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
	// now is the time of the last scrape.
	now time.Time
}

func newSamples(t *testing.T) *samples {
	t.Helper()
	return &samples{storage: teststorage.New(t), engine: newEngine(t), now: time.Now()}
}

// newEngine has what a Prometheus has by default.
func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	return promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
}

// scrape reads the metrics of the target, and adds the labels that the operator
// gives to what a PodMonitor selects.
func (s *samples) scrape(t *testing.T, url string) {
	t.Helper()
	s.now = s.now.Add(interval)
	appender := s.storage.Appender(t.Context())
	s.read(t, url+"/metrics", func(series labels.Labels, value float64) { s.add(t, appender, series, value) })
	s.add(t, appender, labels.FromStrings(model.MetricNameLabel, "up"), 1)
	require.NoError(t, appender.Commit())
}

// scrapeDevices reads the metrics of devices, with honorLabels.
func (s *samples) scrapeDevices(t *testing.T, url string) {
	t.Helper()
	s.now = s.now.Add(interval)
	appender := s.storage.Appender(t.Context())
	s.read(t, url, func(series labels.Labels, value float64) {
		_, err := appender.Append(0, series, s.now.UnixMilli(), value)
		require.NoError(t, err)
	})
	require.NoError(t, appender.Commit())
}

// read reads what a URL serves, as Prometheus does.
func (s *samples) read(t *testing.T, url string, add func(series labels.Labels, value float64)) {
	t.Helper()
	body, contentType := get(t, url)
	metrics, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	for {
		entry, err := metrics.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := metrics.Series()
		var series labels.Labels
		metrics.Labels(&series)
		add(series, value)
	}
}

func (s *samples) add(t *testing.T, appender storage.Appender, series labels.Labels, value float64) {
	t.Helper()
	target := labels.NewBuilder(series)
	for name, value := range map[string]string{
		"job": jobName, "instance": "10.0.0.1:10246", "namespace": "kube-system", "pod": "kwok-controller-0", "container": "kwok-dra", "endpoint": "kwok-dra",
	} {
		require.Empty(t, series.Get(name), "label %s of %s is Prometheus' own", name, series)
		target.Set(name, value)
	}
	_, err := appender.Append(0, target.Labels(), s.now.UnixMilli(), value)
	require.NoError(t, err)
}

func get(t *testing.T, url string) (body []byte, contentType string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	body, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return body, response.Header.Get("Content-Type")
}

// query evaluates an expression at a time.
func (s *samples) query(t *testing.T, expression string, at time.Time) promql.Vector {
	t.Helper()
	query, err := s.engine.NewInstantQuery(t.Context(), s.storage, nil, expression, at)
	require.NoError(t, err, expression)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, expression)
	require.Empty(t, result.Warnings, expression)
	vector, err := result.Vector()
	require.NoError(t, err, expression)
	return vector
}

// knows wants all metrics, labels and values of labels that an expression names
// to be there.
func (s *samples) knows(t *testing.T, expression string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err, expression)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			for _, matcher := range node.LabelMatchers {
				s.knowsMatcher(t, node.Name, matcher)
			}
		case *parser.AggregateExpr:
			s.knowsLabels(t, node)
		}
		return nil
	})
}

// knowsMatcher wants what a matcher takes or leaves out to be there.
func (s *samples) knowsMatcher(t *testing.T, metric string, matcher *labels.Matcher) {
	t.Helper()
	kind := matcher.Type
	switch kind {
	case labels.MatchNotEqual:
		kind = labels.MatchEqual
	case labels.MatchNotRegexp:
		kind = labels.MatchRegexp
	}
	selector := metric + "{" + labels.MustNewMatcher(kind, matcher.Name, matcher.Value).String() + "}"
	if matcher.Name == model.MetricNameLabel {
		selector = matcher.Value
	}
	require.NotEmpty(t, s.query(t, selector, s.now), "nothing is like %s", selector)
}

// knowsLabels wants the labels by which is aggregated to be there.
func (s *samples) knowsLabels(t *testing.T, aggregate *parser.AggregateExpr) {
	t.Helper()
	require.False(t, aggregate.Without, "without keeps labels that are not known: %s", aggregate)
	for _, selectors := range parser.ExtractSelectors(aggregate.Expr) {
		metric := ""
		for _, matcher := range selectors {
			if matcher.Name == model.MetricNameLabel {
				metric = matcher.Value
			}
		}
		for _, label := range aggregate.Grouping {
			require.NotEmpty(t, s.query(t, metric+"{"+label+`!=""}`, s.now), "%s has no label %s", metric, label)
		}
	}
}
