package docs

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
)

const featuresPage = "docs/reference/features.md"

// namedTest is a link to a test in a page: the name, the name of a subtest if there is one, and the file.
var namedTest = regexp.MustCompile("\\[`(Test\\w+)(?:/([^`]+))?`\\]\\(([^)]+)\\)")

// gateRow is a row of the table of gates: the gate, its stage in four versions, whether fake nodes show it, and
// by which test or why not.
var gateRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| (\\w+) \\| (.+) \\|$")

// TestFeatureGates: the page has each gate of Kubernetes once, with its stages. Where fake nodes show it, the
// row names a test.
func TestFeatureGates(t *testing.T) {
	t.Parallel()
	var stages map[string]map[string]string
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, "docs/testdata/gates.yaml")), &stages))
	var gates []string
	for _, row := range gateRow.FindAllStringSubmatch(read(t, featuresPage), -1) {
		gate, isShown, how := row[1], row[6], row[7]
		gates = append(gates, gate)
		for i, shown := range row[2:6] {
			require.Equal(t, stageAt(stages[gate], 34+i), shown, "%s in 1.%d", gate, 34+i)
		}
		require.Contains(t, []string{"yes", "no"}, isShown, gate)
		require.Equal(t, isShown == "yes", namedTest.MatchString(how), "%s: a test is named where it is shown: %s", gate, how)
	}
	require.Equal(t, slices.Sorted(maps.Keys(stages)), gates)
	for _, field := range features.Fields {
		require.Contains(t, gates, field.Gate, "a gate of which kwok-dra knows the field %s", field.Name)
	}
}

// stageAt is the stage of a gate in a minor version.
func stageAt(since map[string]string, minor int) string {
	stage := ""
	for version := minor; stage == "" && version > 0; version-- {
		stage = since[fmt.Sprint("1.", version)]
	}
	return cmp.Or(stage, "–")
}

// TestNamedTestsExist: the tests that the page names are in the files to which it links. Subtests are in
// their package.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	found := namedTest.FindAllStringSubmatch(read(t, featuresPage), -1)
	require.NotEmpty(t, found)
	tests := files(t, "_test.go")
	for _, named := range found {
		file := path.Join(path.Dir(featuresPage), named[3])
		if !strings.Contains(read(t, file), "func "+named[1]+"(t *testing.T)") {
			t.Errorf("%s has no test %s", file, named[1])
		}
		if named[2] == "" {
			continue
		}
		isThere := slices.ContainsFunc(tests, func(other string) bool {
			return path.Dir(other) == path.Dir(file) && strings.Contains(read(t, other), fmt.Sprintf("%q", named[2]))
		})
		require.True(t, isThere, "%s has no subtest %s", named[1], named[2])
	}
}
