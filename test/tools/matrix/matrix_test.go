package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// said is what go test -json says of tests that end in every way.
const said = `{"Action":"start","Package":"e2e"}
{"Action":"run","Test":"TestParts"}
{"Action":"run","Test":"TestParts/Good"}
{"Action":"run","Test":"TestParts/Bad"}
{"Action":"output","Test":"TestParts/Bad","Output":"    parts_test.go:7: 3, want 4\n"}
{"Action":"run","Test":"TestParts/Impossible"}
{"Action":"output","Test":"TestParts/Impossible","Output":"    parts_test.go:9: Kubernetes 1.34: knows no parts\n"}
{"Action":"skip","Test":"TestParts/Impossible","Elapsed":0}
{"Action":"fail","Test":"TestParts/Bad","Elapsed":1.26}
{"Action":"pass","Test":"TestParts/Good","Elapsed":1}
{"Action":"fail","Test":"TestParts","Elapsed":2}
{"Action":"run","Test":"TestCleanup"}
{"Action":"run","Test":"TestCleanup/Good"}
{"Action":"pass","Test":"TestCleanup/Good","Elapsed":1}
{"Action":"fail","Test":"TestCleanup","Elapsed":2}
{"Action":"run","Test":"TestGood"}
{"Action":"pass","Test":"TestGood","Elapsed":61}
{"Action":"run","Test":"TestLost"}
{"Action":"run","Test":"TestLost/Part"}
panic: no JSON
{"Action":"fail","Package":"e2e","Elapsed":65}
`

func TestPackages(t *testing.T) {
	t.Parallel()
	packages, err := packagesIn("../../e2e")
	require.NoError(t, err)
	require.Subset(t, packages, []string{".", "./install", "./publish"})
	for _, other := range others {
		require.DirExists(t, "../../e2e/"+other)
		require.NotContains(t, packages, "./"+other)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	var log, progress bytes.Buffer
	results := newResults(&log, &progress)
	_, err := io.Copy(results, iotest.OneByteReader(strings.NewReader(said)))
	require.NoError(t, err)
	require.Equal(t, counts{
		passed:  3,
		failed:  []string{"TestParts/Bad", "TestCleanup", "TestLost (did not end)"},
		skipped: []skip{{"TestParts/Impossible", "Kubernetes 1.34: knows no parts"}},
	}, results.countResults())
	require.Contains(t, log.String(), "3, want 4\n")
	require.Contains(t, log.String(), "panic: no JSON\n")
	require.Equal(t, `  skip  TestParts/Impossible (0s)
  fail  TestParts/Bad (1.3s)
  fail  TestParts (2s)
  fail  TestCleanup (2s)
  pass  TestGood (1m1s)
`, progress.String())
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := []row{
		{version: "1.34.4", took: time.Minute, log: "1.34.log", counts: counts{
			passed: 3, failed: []string{"TestA"},
			skipped: []skip{{"TestB", "Kubernetes 1.34: knows no parts"}, {"TestC", ""}},
		}},
		{version: "1.35", problem: "does not build: no network", log: "1.35.log"},
		{version: "1.36.3", took: 3 * time.Second, counts: counts{passed: 5}},
	}
	var table bytes.Buffer
	require.NoError(t, printTable(&table, rows))
	require.Equal(t, `KUBERNETES  RAN  PASSED  FAILED  SKIPPED  TIME  REMARKS
1.34.4      4    3       1       2        1m0s  failed: TestA
                                                cannot: TestB (knows no parts)
                                                cannot: TestC (no reason given)
                                                log: 1.34.log
1.35        0    0       0       0        0s    does not build: no network
                                                log: 1.35.log
1.36.3      5    5       0       0        3s
`, table.String())
	require.True(t, rows[0].hasFailed())
	require.True(t, rows[1].hasFailed())
	require.False(t, rows[2].hasFailed())
	require.True(t, row{version: "1.37.1"}.hasFailed(), "what has not run is not proven")
	require.Len(t, row{counts: counts{failed: make([]string, 100)}}.listRemarks(), mostFailed+2)
}

// TestVersionThatDoesNotBuild is a row, and what it says is in its log.
func TestVersionThatDoesNotBuild(t *testing.T) {
	t.Parallel()
	m := &matrix{logs: t.TempDir()}
	r := m.runVersion(t.Context(), "nonsense")
	require.Contains(t, r.problem, "does not build: ")
	require.FileExists(t, r.log)
	require.NoError(t, printTable(io.Discard, []row{r}))
}
