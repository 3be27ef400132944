package dashboards

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

// dashboard is what the tests look at of a Grafana dashboard.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct{ List []variable }
	Annotations   struct{ List []annotation }
	Links         []link
	Panels        []panel
}

type variable struct {
	Type, Name, Label string
	Datasource        datasource
	Query             json.RawMessage
}

type datasource struct{ Type, UID string }

type link struct{ Title, URL string }

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               datasource
	Targets                  []target
	FieldConfig              struct {
		Defaults struct {
			Unit  string
			Links []link
		}
	}
}

type target struct {
	RefID, Expr, LegendFormat string
	Datasource                datasource
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	var d dashboard
	require.NoError(t, json.Unmarshal(read(t, path("kwok-dra.json")), &d))
	return &d
}

// chosen is the data source that the user has chosen.
var chosen = datasource{Type: "prometheus", UID: "${datasource}"}

func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	require.NotEmpty(t, d.UID)
	require.NotEmpty(t, d.Title)
	require.GreaterOrEqual(t, d.SchemaVersion, 41, "that of Grafana 12")
	require.Equal(t, "datasource", d.Templating.List[0].Name)
	require.Equal(t, "datasource", d.Templating.List[0].Type)
	for _, v := range d.Templating.List[1:] {
		require.NotEmpty(t, v.Label, v.Name)
		require.True(t, v.Datasource == chosen || v.Type == "textbox", v.Name)
	}
	titles := map[string]bool{}
	for i, p := range d.Panels {
		require.Equal(t, i+1, p.ID)
		if p.Type == "row" {
			continue
		}
		requirePanel(t, p)
		require.False(t, titles[p.Title], "two panels have the title %s", p.Title)
		titles[p.Title] = true
	}
	requireLayout(t, d.Panels)
}

// TestSchema has Grafana's own types take all fields, those of panels and queries as well.
func TestSchema(t *testing.T) {
	t.Parallel()
	plugins.RegisterDefaultPlugins()
	content := string(read(t, path("kwok-dra.json")))
	require.Empty(t, unknown(content))
	require.NotEmpty(t, unknown(strings.Replace(content, `"lineWidth"`, `"width"`, 1)), "they are strict")
}

// unknown is what Grafana's types do not take.
func unknown(content string) string {
	var parsed grafana.Dashboard //nolint:staticcheck // of the formats, all of Grafana 12 takes this one
	return parsed.UnmarshalJSONStrict([]byte(content)).Error()
}

// TestLinks: they lead to the page by the variable, where a series does to what it shows.
func TestLinks(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	require.Len(t, d.Links, 1)
	require.Equal(t, "${page:raw}", d.Links[0].URL)
	require.Contains(t, names(d.Templating.List), "page")
	linked := 0
	for _, p := range d.Panels {
		for _, l := range p.FieldConfig.Defaults.Links {
			match := regexp.MustCompile(`^\$\{page:raw\}#(driver|state)=\$\{__field\.labels\.(driver|state)\}$`).FindStringSubmatch(l.URL)
			require.NotNil(t, match, l.URL)
			require.Equal(t, match[1], match[2])
			require.Contains(t, p.Targets[0].LegendFormat, match[1], "%s has such series", p.Title)
			linked++
		}
	}
	require.Positive(t, linked)
}

func names(variables []variable) []string {
	var all []string
	for _, v := range variables {
		all = append(all, v.Name)
	}
	return all
}

func requirePanel(t *testing.T, p panel) {
	t.Helper()
	require.NotEmpty(t, p.Title, "panel %d", p.ID)
	require.NotEmpty(t, p.Description, p.Title)
	require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
	require.Equal(t, chosen, p.Datasource, p.Title)
	require.NotEmpty(t, p.Targets, p.Title)
	refs := map[string]bool{}
	for _, query := range p.Targets {
		require.Equal(t, chosen, query.Datasource, p.Title)
		require.False(t, refs[query.RefID], "%s has two queries %s", p.Title, query.RefID)
		refs[query.RefID] = true
	}
}

// requireLayout wants the panels to fill lines of 24 columns, one below the
// other, so that none overlap and Grafana moves none.
func requireLayout(t *testing.T, panels []panel) {
	t.Helper()
	x, y, height := 0, 0, 0
	for _, p := range panels {
		if x == 24 {
			x, y = 0, y+height
		}
		require.Equal(t, []int{x, y}, []int{p.GridPos.X, p.GridPos.Y}, p.Title)
		if x > 0 {
			require.Equal(t, height, p.GridPos.H, p.Title)
		}
		x, height = x+p.GridPos.W, p.GridPos.H
		require.LessOrEqual(t, x, 24, p.Title)
	}
	require.Equal(t, 24, x, "the last line is full")
}

// fill puts in the values that Grafana has for its variables.
func fill(expression, drivers string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$job", jobName, "$driver", drivers).Replace(expression)
}

// testQueries has all queries of the dashboard find something.
func testQueries(t *testing.T, s *samples) {
	forEach(t, readDashboard(t).Panels, func(p panel) string { return p.Title }, func(t *testing.T, p panel) {
		for _, query := range p.Targets {
			for _, drivers := range []string{whole, "(" + whole + "|" + torn + "|" + poorer + ")"} {
				s.testQuery(t, query, fill(query.Expr, strings.ReplaceAll(drivers, ".", `\\.`)))
			}
		}
	})
}

var placeholder = regexp.MustCompile(`{{(\w+)}}`)

func (s *samples) testQuery(t *testing.T, query target, expression string) {
	t.Helper()
	require.NotContains(t, expression, "$")
	s.knows(t, expression)
	result := s.query(t, expression, s.now)
	require.NotEmpty(t, result, expression)
	for _, sample := range result {
		require.False(t, math.IsNaN(sample.F), "%s is not a number", expression)
		for _, label := range placeholder.FindAllStringSubmatch(query.LegendFormat, -1) {
			require.NotEmpty(t, sample.Metric.Get(label[1]), "%s has no label %s for the legend", expression, label[1])
		}
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// testVariables has the queries of variables find something.
func testVariables(t *testing.T, s *samples) {
	for _, v := range readDashboard(t).Templating.List[1:] {
		if v.Type == "textbox" {
			continue
		}
		var query struct{ Query string }
		require.NoError(t, json.Unmarshal(v.Query, &query))
		match := labelValues.FindStringSubmatch(fill(query.Query, ".*"))
		require.NotNil(t, match, query.Query)
		s.knows(t, match[1])
		values := map[string]bool{}
		for _, sample := range s.query(t, match[1], s.now) {
			values[sample.Metric.Get(match[2])] = true
		}
		require.Contains(t, []map[string]bool{{jobName: true}, {whole: true, torn: true, poorer: true}}, values, v.Name)
	}
}

// legend fills in the labels of a series.
func legend(format string, of labels.Labels) string {
	return placeholder.ReplaceAllStringFunc(format, func(label string) string { return of.Get(strings.Trim(label, "{}")) })
}

// testShows has panels show what has happened, each series above 0.
func testShows(t *testing.T, s *samples) {
	want := map[string][]string{
		"Waiting Pods by reason":     {"simulated", "not_reserved"},
		"Nodes":                      {"Nodes"},
		"Devices by state":           {"free", "failing", "prepared", "tainted"},
		"Devices by driver":          {whole, torn, poorer},
		"Publish failures":           {"annotation", "api"},
		"Prepare failures":           {"simulated", "not_reserved"},
		"Work queue retries":         {"slices"},
		"Incomplete pools by driver": {torn},
		"Refused versions":           {"ConfigMap default/kwok-dra"},
		"API requests":               {"200", "201"},
		"Writes of slices":           {"create ok"},
	}
	for _, p := range readDashboard(t).Panels {
		var got []string
		for _, query := range p.Targets {
			for _, sample := range s.query(t, fill(query.Expr, ".*"), s.now) {
				if sample.F > 0 {
					got = append(got, legend(query.LegendFormat, sample.Metric))
				}
			}
		}
		if len(want[p.Title]) > 0 {
			require.Subset(t, got, want[p.Title], p.Title)
		}
		delete(want, p.Title)
	}
	require.Empty(t, want, "there are no such panels")
}
