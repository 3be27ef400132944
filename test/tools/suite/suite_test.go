package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain has the test program count CPU time as the suite does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && slices.Contains([]string{countArgument, countTestsArgument}, os.Args[1]) {
		os.Exit(runCounted(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

func shell(name, script string) part { return part{name: name, command: []string{"sh", "-c", script}} }

func passes(name string) part { return shell(name, "true") }

func fails(name, message string) part { return shell(name, "echo '"+message+"'; exit 1") }

func TestAllPass(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, runAll(t.Context(), &out, []part{passes("a")}))
	require.Regexp(t, `(?s)^\[1/1\] a\n\[1/1\] a: done in .*TIME .*\nAll 1 parts passed in 0s\.\n$`, out.String())
}

func TestOthersRunAfterAFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := runAll(t.Context(), &out, []part{fails("a", "--- FAIL: TestA"), passes("b"), fails("c", "--- FAIL: TestC")})
	require.EqualError(t, err, "failed: a, c")
	for _, want := range []string{"] a: failed after", "--- FAIL: TestA\na: exit status 1\n", "] b: done in", "--- FAIL: TestC\nc: exit status 1\n", "1 of 3 parts passed in"} {
		require.Contains(t, out.String(), want)
	}
}

// TestOutputStaysTogether has parts that run side by side and fail at once.
func TestOutputStaysTogether(t *testing.T) {
	t.Parallel()
	var all []part
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, shell(name, "for i in 1 2 3 4 5 6 7 8 9; do echo "+name+"; done; exit 1"))
	}
	var out bytes.Buffer
	require.Error(t, runAll(t.Context(), &out, all))
	for _, p := range all {
		require.Contains(t, out.String(), strings.Repeat(p.name+"\n", 9)+p.name+": exit status 1\n")
	}
}

// TestWaitingBesideComputing has a part that computes and one that waits, each of
// which ends only while the other runs.
func TestWaitingBesideComputing(t *testing.T) {
	t.Parallel()
	pipe := t.TempDir() + "/pipe"
	computing, waits := shell("computes", "echo met > "+pipe), shell("waits", "read line < "+pipe)
	waits.waits = true
	mkfifo := shell("mkfifo", "mkfifo "+pipe)
	require.NoError(t, runAll(t.Context(), io.Discard, []part{mkfifo}))
	require.NoError(t, runAll(t.Context(), io.Discard, []part{computing, waits}))
}

func TestNoProgramsNoClusters(t *testing.T) {
	t.Parallel()
	programs := fails(programsPart, "no compiler")
	onCluster := fails("test/e2e", "must not run")
	onCluster.needsCluster = true
	var out bytes.Buffer
	err := runAll(t.Context(), &out, []part{passes("a"), programs, onCluster, passes("b")})
	require.EqualError(t, err, "failed: programs of a cluster")
	require.Contains(t, out.String(), "Not run, since the programs of a cluster could not be made: test/e2e\n")
	require.Contains(t, out.String(), "2 of 4 parts passed in")
	require.NotContains(t, out.String(), "must not run")
}

// TestClustersAfterPrograms has all that needs the programs wait for them.
func TestClustersAfterPrograms(t *testing.T) {
	t.Parallel()
	made := t.TempDir() + "/made"
	all := []part{shell(programsPart, "sleep 0.1; touch "+made)}
	for _, name := range []string{"a", "b", "c", "d"} {
		p := shell(name, "test -e "+made)
		p.needsCluster = true
		all = append(all, p)
	}
	require.NoError(t, runAll(t.Context(), io.Discard, all))
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	out := &cancelAt{text: "[1/4] a", cancel: cancel}
	all := []part{shell("a", "sleep 600"), shell("b", "sleep 600"), shell("c", "sleep 600"), fails("d", "must not run")}
	require.ErrorIs(t, runAll(ctx, out, all), errInterrupted)
	require.NotContains(t, out.all.String(), "must not run")
	require.Contains(t, out.all.String(), "TIME  WAITING")
}

// cancelAt cancels as soon as a text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
	all    bytes.Buffer
}

func (c *cancelAt) Write(data []byte) (int, error) {
	if n, err := c.all.Write(data); err != nil {
		return n, err
	}
	if strings.Contains(c.all.String(), c.text) {
		c.cancel()
	}
	return len(data), nil
}

func TestTimes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printTimes(&out, []result{
		{name: "unit tests", times: times{took: 65 * time.Second, cpu: 2 * time.Minute}},
		{name: "quick", times: times{took: time.Second, cpu: time.Second}},
		{name: "test/faults", times: times{took: 10 * time.Minute, cpu: 90 * time.Second, building: 10 * time.Second, clusters: 3, starting: 12 * time.Second}},
		{name: "quick too", times: times{took: 2 * time.Second, cpu: time.Second}},
	})
	require.Equal(t, `    TIME  WAITING      CPU BUILDING    CLUSTERS  PART
   10m0s    8m30s    1m30s      10s    3 in 12s  test/faults
    1m5s              2m0s                       unit tests
      3s       1s       2s                       2 parts that took less than 10s each
                     3m32s      10s    3 in 12s  all
`, out.String())
}

func TestClassify(t *testing.T) {
	t.Parallel()
	got := classifyPackages("example.org/cmd fmt\n" +
		"example.org/a.test fmt example.org/a\n\n" +
		"example.org/b.test fmt " + clusterPrograms + "\n")
	require.Equal(t, packages{quick: []string{"example.org/a"}, onClusters: []string{"example.org/b"}}, got)
}

func TestWaitingFirst(t *testing.T) {
	t.Parallel()
	sorted := waitingFirst([]part{{name: "test/e2ex"}, {name: "test/e2e/drivers/record"}, {name: "test/cluster"}, {name: "test/faults"}})
	require.Equal(t, []part{{name: "test/faults", waits: true}, {name: "test/e2e/drivers/record", waits: true}, {name: "test/e2ex"}, {name: "test/cluster"}}, sorted)
}

// TestRings holds the rings against the packages that exist: the first and the rest
// are all.
func TestRings(t *testing.T) {
	t.Parallel()
	every, err := allParts(t.Context())
	require.NoError(t, err)
	inFirst, err := first.partsOf(every)
	require.NoError(t, err)
	others, err := rest.partsOf(every)
	require.NoError(t, err)
	require.Len(t, inFirst, 1+len(firstRing), "the table of the first ring names parts that do not exist")
	limits := map[string][][]string{}
	for _, p := range append(inFirst, others...) {
		limits[p.name] = append(limits[p.name], p.limit)
	}
	require.Len(t, limits, len(every))
	require.Len(t, limits[programsPart], 2)
	require.Equal(t, [][]string{{"-run", "^TestStages$"}, {"-skip", "^TestStages$"}}, limits["test/e2e/stages"])
	require.Equal(t, [][]string{nil}, limits["test/faults"])
	require.Equal(t, [][]string{nil}, limits["unit tests"])
	_, err = ring("second").partsOf(every)
	require.EqualError(t, err, `read -ring "second": must be first, rest or all`)
}

// TestParts holds the parts against the packages that exist.
func TestParts(t *testing.T) {
	t.Parallel()
	every, err := allParts(t.Context())
	require.NoError(t, err)
	names := map[string]part{}
	for _, p := range every {
		names[p.name] = p
	}
	for _, dir := range waiting {
		require.Contains(t, names, dir)
	}
	require.NotContains(t, names["unit tests"].command, "-count")
	require.NotContains(t, names["unit tests"].command, "-exec", "with it Go keeps no results")
	require.Contains(t, names["unit tests of test"].command, "-count")
	require.False(t, names["unit tests of test"].needsCluster)
	require.True(t, names["test/cluster"].needsCluster)
	require.Equal(t, []string{programsPart, "test/faults"}, namesOf(matchingParts(every, regexp.MustCompile("^test/faults$"))))
	require.Equal(t, []string{"unit tests"}, namesOf(matchingParts(every, regexp.MustCompile("^unit tests$"))))
}

func namesOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}
