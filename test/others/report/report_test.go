package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is what Ginkgo reports of specs that end in every way.
const said = `[{"SuitePath": "/e2e", "SpecReports": [
	{"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed", "RunTime": 1000000},
	{"ContainerHierarchyTexts": ["Test GPU  allocation"], "LeafNodeType": "It", "LeafNodeText": "should allocate", "State": "passed", "RunTime": 12340000000},
	{"ContainerHierarchyTexts": ["Test", "Binding"], "LeafNodeType": "It", "LeafNodeText": "should publish", "State": "timedout", "RunTime": 1000000000,
		"Failure": {"Message": "two\nlines\n"}},
	{"ContainerHierarchyTexts": ["Test", "Binding"], "LeafNodeType": "It", "LeafNodeText": "should run", "State": "skipped",
		"Failure": {"Message": "an earlier spec failed"}},
	{"ContainerHierarchyTexts": null, "LeafNodeType": "It", "LeafNodeText": "should reject", "State": "skipped"},
	{"ContainerHierarchyTexts": null, "LeafNodeType": "AfterSuite", "LeafNodeText": "", "State": "panicked", "Failure": {"Message": "nil"}}
]}]`

func readSuite(t *testing.T) *Suite {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, []byte(said), 0o600))
	specs, err := Read(file, "")
	require.NoError(t, err)
	return &Suite{Name: "driver", Version: "v1.2.3", Kubernetes: "1.36.3", Specs: specs, Log: "driver.log"}
}

func TestRead(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Spec{
		{Name: "Test GPU allocation should allocate", Result: Passed, Seconds: 12.3},
		{Name: "Test Binding should publish", Result: Failed, Seconds: 1, Message: "two\nlines"},
		{Name: "Test Binding should run", Result: Skipped, Message: "an earlier spec failed"},
		{Name: "should reject", Result: LeftOut},
		{Name: "AfterSuite", Result: Failed, Message: "nil"},
	}, readSuite(t).Specs)
}

// labelled is what Ginkgo reports of a program that has specs of several suites.
const labelled = `[{"SpecReports": [
	{"LeafNodeType": "It", "LeafNodeText": "by its container", "State": "passed", "ContainerHierarchyLabels": [["sig-node", "DRA"], []], "LeafNodeLabels": []},
	{"LeafNodeType": "It", "LeafNodeText": "by itself", "State": "skipped", "ContainerHierarchyLabels": [], "LeafNodeLabels": ["DRA"]},
	{"LeafNodeType": "It", "LeafNodeText": "other", "State": "skipped", "ContainerHierarchyLabels": [["sig-storage"]], "LeafNodeLabels": ["DRAFT"]},
	{"LeafNodeType": "BeforeSuite", "State": "failed"}
]}]`

func TestReadLabel(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(file, []byte(labelled), 0o600))
	specs, err := Read(file, "DRA")
	require.NoError(t, err)
	require.Equal(t, []Spec{
		{Name: "by its container", Result: Passed},
		{Name: "by itself", Result: LeftOut},
		{Name: "BeforeSuite", Result: Failed},
	}, specs)
}

func TestReadNonsense(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	_, err := Read(file, "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(file, []byte("[{"), 0o600))
	_, err = Read(file, "")
	require.ErrorContains(t, err, file)
}

func TestBad(t *testing.T) {
	t.Parallel()
	good := Spec{Result: Passed}
	require.False(t, (&Suite{Specs: []Spec{good, {Result: LeftOut}, {Result: Skipped}}}).Bad())
	require.True(t, (&Suite{Specs: []Spec{good, {Result: Failed}}}).Bad())
	require.True(t, (&Suite{Specs: []Spec{good}, Problem: "no cluster"}).Bad())
	require.True(t, (&Suite{Specs: []Spec{{Result: LeftOut}}}).Bad())
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	suite := readSuite(t)
	suite.Specs[3].Message = "it needs a webhook"
	require.NoError(t, Table(&out, []*Suite{suite, {Name: "other", Version: "v2", Problem: "does not build"}}))
	require.Equal(t, `SUITE   VERSION  SPEC                                 RESULT
driver  v1.2.3   Test GPU allocation should allocate  passed
driver  v1.2.3   Test Binding should publish          failed
driver  v1.2.3   Test Binding should run              skipped
driver  v1.2.3   should reject                        left out
driver  v1.2.3   AfterSuite                           failed

failed: Test Binding should publish
  two
  lines
skipped: Test Binding should run
  an earlier spec failed
failed: AfterSuite
  nil
left out, since it needs a webhook:
  should reject
log: driver.log
driver v1.2.3 on Kubernetes 1.36.3: 1 of 4 specs passed, 1 left out, 1 skipped in 13s

other v2: does not build
`, out.String())
}

func TestJSON(t *testing.T) {
	t.Parallel()
	suite := readSuite(t)
	var out bytes.Buffer
	require.NoError(t, JSON(&out, []*Suite{suite}))
	var read []*Suite
	require.NoError(t, json.Unmarshal(out.Bytes(), &read))
	require.Equal(t, []*Suite{suite}, read)
}
