package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
	"github.com/kwok-dra/kwok-dra/pkg/drajudge"
)

// violationOf is of a statement and a Pod or claim.
func violationOf(id, name string) drajudge.Violation {
	for _, s := range drajudge.Statements() {
		if s.ID == id {
			return drajudge.Violation{
				Statement: s, ResourceVersion: "7", Objects: []drajudge.Object{{Kind: "ResourceClaim", Namespace: "story-1", Name: name}},
				Evidence: "device gpu.example.com/node-1/gpu-0 is allocated while claim <a> has it",
			}
		}
	}
	panic(id)
}

// reportOfSixStories has a statement of each outcome.
func reportOfSixStories() *Report {
	r := &Report{Command: "check-scheduler", Subject: "my-scheduler", Kubernetes: "v1.36.3", FirstSeed: 1}
	statements, err := ChooseStatements(drajudge.Statements(), "^(device-once|counters-total|pod-placed)$")
	if err != nil {
		panic(err)
	}
	r.AddStatements(statements)
	r.Skip(func(id string) bool { return id == "counters-total" }, "the API server does not have the feature")
	for seed := int64(1); seed <= 6; seed++ {
		var violations []drajudge.Violation
		if seed > 1 {
			violations = append(violations, violationOf("device-once", "a"), violationOf("device-once", "b"))
		}
		for _, failed := range r.addStory(seed, violations, time.Second) {
			failed.Evidence = &Evidence{
				Seed: seed, Parts: 4, Whole: 40, Plays: 20, Reproduced: true,
				Seen: "device gpu.example.com/story-node-1/gpu-0 is allocated twice", Story: "steps: []\n", Script: "kubectl create namespace story\n",
			}
		}
	}
	return r
}

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"printTable":      func(out io.Writer) error { return reportOfSixStories().printTable(out) },
		"PrintStatements": func(out io.Writer) error { return PrintStatements(out, output.Table, drajudge.Statements()[:3]) },
	}, tabletest.Driver)
}

func TestReportForPrograms(t *testing.T) {
	t.Parallel()
	r := reportOfSixStories()
	var out bytes.Buffer
	require.NoError(t, output.Value(&out, output.JSON, r))
	read := Report{Command: r.Command, Subject: r.Subject}
	require.NoError(t, json.Unmarshal(out.Bytes(), &read))
	require.Equal(t, *r, read)
	require.Equal(t, []int64{2, 3, 4, 5, 6}, read.Results[0].Seeds)
	require.Equal(t, 6, read.Stories)

	out.Reset()
	require.NoError(t, r.Print(&out, output.JUnit))
	var suite output.Suite
	require.NoError(t, xml.Unmarshal(out.Bytes(), &suite))
	require.Equal(t, [3]int{3, 1, 1}, [3]int{suite.Tests, suite.Failures, suite.Skipped})
	outcomes := map[string]bool{}
	for _, c := range suite.Cases {
		require.Equal(t, "my-scheduler", c.Class)
		outcomes[c.Name[:10]] = c.Failure != nil
		require.Equal(t, c.Name[:8] == "counters", c.Skipped != nil, c.Name)
	}
	require.Equal(t, map[string]bool{"device-onc": true, "counters-t": false, "pod-placed": false}, outcomes)
	require.Contains(t, suite.Cases[0].Failure.Text, "kubectl create namespace story")
	require.Contains(t, suite.Cases[0].Failure.Message, "claim <a> has it")
}

func TestDescribeViolations(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ok", describeViolations(nil))
	require.Equal(t, "violates device-once, pod-placed", describeViolations([]drajudge.Violation{
		violationOf("device-once", "a"), violationOf("device-once", "b"), violationOf("pod-placed", "c"),
	}))
}

func TestDescribeEvidence(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Evidence{
		"story 1, not played again":                      {Seed: 1},
		"not seen again in 3 plays of story 1":           {Seed: 1, Plays: 3},
		"4 of 40 parts of story 1 are enough (20 plays)": {Seed: 1, Plays: 20, Reproduced: true, Parts: 4, Whole: 40},
	} {
		require.Equal(t, want, e.describe())
	}
}

// A command ends with the first story that could not be played, or with no if a statement was violated.
func TestConclude(t *testing.T) {
	t.Parallel()
	r := reportOfSixStories()
	require.ErrorIs(t, r.conclude(), cli.ErrNegative)
	r.Problems = []string{"story 3: no scheduler", "story 4: no scheduler"}
	require.EqualError(t, r.conclude(), "2 of 6 stories could not be played to the end: story 3: no scheduler")
	require.NoError(t, (&Report{}).conclude())
}

// An interrupted command reports what the last story has violated by then, and what is left of it. A story that is shrunk
// leaves it alike, and keeps its evidence.
func TestReportLeftovers(t *testing.T) {
	t.Parallel()
	left := &story.LeftoverError{ID: "story-1", Resources: []string{"nodes", "namespaces"}, Err: errors.New("list nodes: no")}
	const advice = "story story-1 may have left objects: list nodes: no: delete them with\n  kubectl delete nodes,namespaces -l dra.kwok.x-k8s.io/story=story-1"
	for name, c := range map[string]struct {
		plays int // until one leaves objects
		stop  bool
		want  string
	}{
		"interrupted while it plays":   {1, true, "play story 1: context canceled\n" + advice},
		"interrupted while it shrinks": {2, true, "shrink story 1: context canceled\n" + advice},
		"while it shrinks":             {2, false, "shrink story 1: " + advice},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			report, plays := &Report{}, 0
			report.AddStatements(drajudge.Statements())
			run := &Run{Streams: cli.Streams{ErrOut: io.Discard}, First: 1, Seeds: 3}
			run.Limit, run.NewStory = time.Minute, func(id string, seed int64) *story.Story {
				namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: id}}
				return &story.Story{ID: id, Seed: seed, Steps: []story.Step{{Say: "It begins.", Create: story.Objects{namespace}}}}
			}
			run.Play = func(ctx context.Context, _ int64, _ []int) ([]drajudge.Violation, error) {
				plays++
				violations := []drajudge.Violation{violationOf("device-once", "a")}
				if plays < c.plays {
					return violations, nil
				}
				if c.stop {
					cancel()
				}
				return violations, errors.Join(ctx.Err(), left)
			}
			require.EqualError(t, run.ReportStories(ctx, report, func() error { return nil }), c.want)
			require.Equal(t, c.plays, plays)
			require.Equal(t, 1, report.Stories)
			result := report.Results[slices.IndexFunc(report.Results, func(result Result) bool { return result.ID == "device-once" })]
			require.Equal(t, []int64{1}, result.Seeds)
			require.Equal(t, c.stop, result.Evidence == nil)
		})
	}
}

// An interrupted command reports the stories that it has played.
func TestReportStories(t *testing.T) {
	t.Parallel()
	const played = 2
	for _, interruptedAfter := range []int64{0, played, 9} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		report, printed := reportOfSixStories(), 0
		report.Stories = 0
		run := &Run{Streams: cli.Streams{ErrOut: io.Discard}, First: 1, Seeds: 3}
		run.Play = func(ctx context.Context, seed int64, _ []int) ([]drajudge.Violation, error) {
			if seed > interruptedAfter {
				cancel()
			}
			return nil, ctx.Err()
		}
		err := run.ReportStories(ctx, report, func() error { printed = report.Stories; return nil })
		switch interruptedAfter {
		case 0:
			require.EqualError(t, err, "play story 1: context canceled")
			require.Zero(t, printed)
		case played:
			require.EqualError(t, err, "play story 3: context canceled")
			require.Equal(t, played, printed)
		default:
			require.ErrorIs(t, err, cli.ErrNegative)
			require.Equal(t, 3, printed)
		}
	}
}
