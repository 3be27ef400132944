package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

const older, newer = "v1.35.4", "v1.36.3"

// rounds are samples of a subject, of which all figures are about the same times a factor.
func rounds(factor float64) []sample {
	var all []sample
	for round := range 6 {
		s := sample{}
		for _, m := range metrics {
			s[m.key] = factor * (100 + float64(round))
		}
		all = append(all, s)
	}
	return all
}

// pointOf is a point at which the newer subject takes that many times as much.
func pointOf(along string, value int, factor float64) point {
	i := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == along })
	return point{
		Dimension: along, Value: value, Shape: dimensions[i].shapeAt(value), Samples: map[string][]sample{older: rounds(1), newer: rounds(factor)},
		Paces: map[string][]pace{older: {{Creating: 0.5}}, newer: {{Creating: 0.5}}},
	}
}

func verdictsOf(p point) map[string]string {
	found := map[string]string{}
	for _, v := range p.judge(older, newer) {
		found[v.Metric] = v.Verdict
	}
	return found
}

func TestCompare(t *testing.T) {
	t.Parallel()
	cost, rate := metric{key: "cost"}, metric{key: "rate", grows: true}
	low, high := []float64{100, 101, 102, 103, 104, 105}, []float64{150, 151, 152, 153, 154, 155}
	for name, test := range map[string]struct {
		metric   metric
		old, new []float64
		want     string
	}{
		"costs more":           {cost, low, high, regression},
		"costs less":           {cost, high, low, improvement},
		"is slower":            {rate, high, low, regression},
		"is faster":            {rate, low, high, improvement},
		"is the same":          {cost, low, low, same},
		"is certain but small": {cost, low, []float64{106, 107, 108, 109, 110, 111}, same},
		"is large but unclear": {cost, low, []float64{50, 50, 50, 150, 150, 150}, same},
		"has too few rounds":   {cost, low[:3], high[:3], same},
		"was nothing":          {cost, []float64{0, 0, 0, 0}, []float64{1, 2, 3, 4}, regression},
	} {
		v := compare(test.metric, test.old, test.new)
		require.Equal(t, test.want, v.Verdict, "%s: %+v", name, v)
	}
	v := compare(cost, low, high)
	require.InDelta(t, 0.4878, v.Delta, 1e-4, "of the medians 102.5 and 152.5")
	require.InDelta(t, 0.002, v.P, 2e-4, "the least that six rounds can show")
	require.Equal(t, []float64{100, 101, 102, 103, 104, 105}, low, "samples stay in their order")
}

// TestJudge: a regression has to show again, and rates that are the writer's own have no verdict.
func TestJudge(t *testing.T) {
	t.Parallel()
	worse := pointOf("nodes", 50, 2)
	require.True(t, worse.hasRegression(older, newer))
	require.Equal(t, regression, verdictsOf(worse)["allocationP50"])
	require.Equal(t, improvement, verdictsOf(worse)["podRate"], "twice the rate")

	worse.Again = map[string][]sample{older: rounds(1), newer: rounds(2)}
	require.Equal(t, regression, verdictsOf(worse)["allocationP50"])
	worse.Again[newer] = rounds(1)
	require.Equal(t, unconfirmed, verdictsOf(worse)["allocationP50"])

	worse = pointOf("nodes", 50, 2)
	worse.Paces[older][0].Creating, worse.Paces[newer][0].Creating = 0.95, 0.97
	found := verdictsOf(worse)
	require.Equal(t, unpaced, found["allocationP50"])
	require.Equal(t, unpaced, found["podRate"])
	require.Equal(t, regression, found["schedulerCPU"], "CPU does not depend on the pace")
	calm := pointOf("nodes", 50, 1)
	require.False(t, calm.hasRegression(older, newer))
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	p := pointOf("nodes", 50, 1)
	require.Empty(t, p.listWarnings())
	for want, bad := range map[string]pace{
		"the writer was the limit": {Creating: 0.96},
		"this program took 50 %":   {Own: 0.5},
		"other programs took 70 %": {Others: 0.7},
	} {
		p.Paces = map[string][]pace{newer: {bad}}
		require.Len(t, p.listWarnings(), 1)
		require.Contains(t, p.listWarnings()[0], want)
	}
	p = pointOf("nodes", 50, 1)
	p.Failed = []string{"round 1: wait for the claims to go"}
	require.Equal(t, []string{"measured again since it failed once: round 1: wait for the claims to go"}, p.listWarnings())
}

func TestFitExponent(t *testing.T) {
	t.Parallel()
	exponent, fit, points := fitExponent([]float64{0, 1, 2, 4, 8}, []float64{5, 3, 12, 48, 192})
	require.InDelta(t, 2, exponent, 1e-9, "of 3x², the point at 0 left out")
	require.InDelta(t, 1, fit, 1e-9)
	require.Equal(t, 4, points)
	exponent, fit, _ = fitExponent([]float64{1, 2, 4}, []float64{7, 7, 7})
	require.InDelta(t, 0, exponent, 1e-9)
	require.InDelta(t, 1, fit, 1e-9)
	exponent, fit, _ = fitExponent([]float64{1, 10, 100}, []float64{1, 2, 1})
	require.InDelta(t, 0, exponent, 1e-9)
	require.InDelta(t, 0, fit, 1e-9, "a line explains nothing of it")
	for _, x := range [][]float64{nil, {3}, {3, 3}} {
		exponent, _, points = fitExponent(x, x)
		require.Zero(t, exponent)
		require.Len(t, x, points)
	}
}

// testReport has two dimensions, along one of which the newer version is worse.
func testReport() *report {
	r := &report{Machine: "a machine", Date: "2026-01-02", Subjects: []string{older, newer}, Rounds: 6, Base: baseShape(), Seconds: 600}
	for _, value := range []int{10, 50, 150} {
		r.Points = append(r.Points, pointOf("nodes", value, float64(value)/10))
	}
	for _, value := range []int{1, 2, 4} {
		r.Points = append(r.Points, pointOf("requests", value, 1))
	}
	r.Points[5].Paces[newer][0].Others = 0.9
	r.Skipped = []string{"counters is left out"}
	r.conclude()
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := testReport()
	require.Positive(t, countRegressions(r.Verdicts))
	var out bytes.Buffer
	require.NoError(t, r.printTables(&out))
	require.Regexp(t, `(?m)^base point +schedulerCPU, ms/Pod +102\.5 +512\.5 +\+400\.0 % +0\.002 +REGRESSION$`, out.String())
	require.Regexp(t, `(?m)^nodes at 150 +podRate, /s .*improvement$`, out.String())
	require.NotContains(t, out.String(), "requests at 2", "nothing has changed along it")
	require.Contains(t, out.String(), "requests at 4: other programs took 45 % of all processors")
	require.Contains(t, out.String(), "counters is left out")

	alone := *r
	alone.Subjects = []string{newer}
	alone.conclude()
	require.Empty(t, alone.Verdicts)
	out.Reset()
	require.NoError(t, alone.printTables(&out))
	require.Regexp(t, `(?m)^nodes +exponent +1\.00 +1\.00`, out.String())
	require.Regexp(t, `(?m)^requests +exponent +-?0\.00 `, out.String())

	// A run with regressions fails, and its report is there.
	o := options{format: "json", file: filepath.Join(t.TempDir(), "bin", "envelope.json")}
	out.Reset()
	require.ErrorContains(t, o.writeReport(&out, r), "compare v1.35.4 with v1.36.3: ")
	again, err := readReport(o.file)
	require.NoError(t, err)
	require.Equal(t, r, again)
	var printed report
	require.NoError(t, json.Unmarshal(out.Bytes(), &printed))
	r.Verdicts = nil
	require.NoError(t, o.writeReport(io.Discard, r))
}

func TestPage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "docs", "envelope.md")
	var files []string
	for _, machine := range []string{"a machine", "another machine"} {
		r := testReport()
		r.Machine = machine
		var encoded bytes.Buffer
		require.NoError(t, r.writeJSON(&encoded))
		files = append(files, filepath.Join(folder, machine))
		require.NoError(t, os.WriteFile(files[len(files)-1], encoded.Bytes(), 0o600))
	}
	require.NoError(t, writePage(path, files))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(content)
	for _, want := range []string{
		"The base point has 50 nodes with 16 devices of 8 attributes each",
		"## v1.35.4 against v1.36.3\n\na machine, on 2026-01-02. 6 rounds, 10 minutes.\n",
		"| nodes | 0.00 (1.00), 1.00 (1.00) | 0.00 (1.00), 1.00 (1.00) | 0.00 (1.00), 1.00 (1.00) | 0.00 (1.00), 1.00 (1.00) |",
		"| base point | CPU of kube-scheduler, ms/Pod | 102.5 | 512.5 | +400.0 % | 0.002 | REGRESSION |",
		"- requests at 4: other programs took 45 %",
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "%!", "all verbs have a value")
	pictures := regexp.MustCompile(`\]\((images/[^)]+\.svg)\)`).FindAllStringSubmatch(page, -1)
	require.Len(t, pictures, 2*len(drawn))
	for _, picture := range pictures {
		svg, err := os.ReadFile(filepath.Join(filepath.Dir(path), picture[1]))
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(svg), "<g "), "a panel for each dimension")
		require.Equal(t, 12, strings.Count(string(svg), "<circle "))
	}
	require.ErrorContains(t, writePage(path, nil), "name reports")
	require.Error(t, writePage(path, []string{path}))
}

// A later run of one dimension of the same comparison adds it, or replaces it.
func TestAddReport(t *testing.T) {
	t.Parallel()
	all := testReport()
	again := testReport()
	again.Skipped = append(again.Skipped, "shares is left out")
	again.Date, again.Points = "2026-01-03", []point{pointOf("nodes", 50, 7), pointOf("pods", 25, 2)}
	reports := addReport(addReport(nil, all), again)
	require.Equal(t, []*report{all}, reports)
	require.Equal(t, "2026-01-03", all.Date)
	require.InDelta(t, 1200, all.Seconds, 0)
	require.Equal(t, []string{"counters is left out", "shares is left out"}, all.Skipped)
	var points []string
	for _, p := range all.Points {
		points = append(points, pointName(p.Dimension, p.Value))
	}
	require.Equal(t, []string{"requests at 1", "requests at 2", "requests at 4", "nodes at 50", "pods at 25"}, points)
	require.Len(t, all.Verdicts, len(metrics)*len(all.distinctPoints()))

	for _, change := range []func(*report){
		func(r *report) { r.Subjects = []string{newer} },
		func(r *report) { r.Machine = "another" },
		func(r *report) { r.Rounds = 4 },
		func(r *report) { r.Base.Nodes++ },
	} {
		other := testReport()
		change(other)
		require.Len(t, addReport([]*report{all}, other), 2)
	}
}

func TestBusyTime(t *testing.T) {
	t.Parallel()
	busy := busyTime("cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 1 1 1\n")
	require.Equal(t, "1.71s", busy.String(), "user, nice, system, interrupts and stolen")
	require.Zero(t, busyTime(""))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	e := envelope{subjects: []subject{{Version: "v1.34.4"}, {Version: newer}}}
	require.NoError(t, e.choose(regexp.MustCompile("^(nodes|counters)$")))
	require.Len(t, e.chosen, 1)
	require.Equal(t, []string{"counters is left out: it needs Kubernetes 1.35, and v1.34.4 is older"}, e.skipped)
	err := new(envelope).choose(regexp.MustCompile("none"))
	for _, d := range dimensions {
		require.ErrorContains(t, err, d.name)
	}
}

func TestSubjects(t *testing.T) {
	t.Setenv("KUBERNETES_VERSION", "1.36")
	names := func(o options) (names []string) {
		subjects, err := o.subjects()
		require.NoError(t, err)
		for _, s := range subjects {
			require.True(t, semver.IsValid(s.Version))
			names = append(names, s.name())
		}
		return names
	}
	require.Equal(t, []string{newer}, names(options{}))
	require.Equal(t, []string{older, newer}, names(options{against: "1.35"}))
	require.Equal(t, []string{newer, newer + "+slow"}, names(options{patch: "patches/slow.patch"}))
	_, err := (&options{against: newer}).subjects()
	require.ErrorContains(t, err, "with itself")
}

// TestPatches: the patches say which programs they are for.
func TestPatches(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("patches/*.patch")
	require.NoError(t, err)
	programs := map[string]string{}
	for _, path := range found {
		programs[filepath.Base(path)], err = readPatchedProgram(path)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]string{"claim-events-pass-the-cache.patch": "kube-controller-manager", "pods-wait-for-the-scheduler.patch": "kube-scheduler"}, programs)
	bad := filepath.Join(t.TempDir(), "bad.patch")
	require.NoError(t, os.WriteFile(bad, []byte("--- a/x\n"), 0o600))
	_, err = readPatchedProgram(bad)
	require.ErrorContains(t, err, "begin it with sentences")
}
