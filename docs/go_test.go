package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goBlock is a block of Go code.
var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// envtest stands for the package of controller-runtime, which is no module of this project,
// by what the pages use of it.
const (
	envtestPath = "sigs.k8s.io/controller-runtime/pkg/envtest"
	envtest     = `package envtest

import "k8s.io/client-go/rest"

type Environment struct{ Config *rest.Config }

func (*Environment) Start() (*rest.Config, error) { return nil, nil }
func (*Environment) Stop() error                  { return nil }
`
)

// userPages are README.md and the pages of docs.
func userPages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t, ".md"), func(page string) bool { return page != "README.md" && !strings.HasPrefix(page, "docs/") })
}

// TestGoCodeCompiles: the Go code of the pages is whole programs, imports too, that compile
// with this project.
func TestGoCodeCompiles(t *testing.T) {
	t.Parallel()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	dir, overlay := t.TempDir(), map[string]string{}
	add := func(path, content string) {
		file := filepath.Join(dir, fmt.Sprint(len(overlay)))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		overlay[filepath.Join(top, "docs", "testdata-of-pages", path)] = file
	}
	add("envtest/envtest.go", envtest)
	count := 0
	for _, page := range userPages(t) {
		for _, block := range goBlock.FindAllStringSubmatch(read(t, page), -1) {
			count++
			code := strings.ReplaceAll(block[1], envtestPath, "github.com/kwok-dra/kwok-dra/docs/testdata-of-pages/envtest")
			require.Regexp(t, `(?m)^package `, code, "%s has a fragment of Go: make it a file that a reader can save", page)
			add(fmt.Sprintf("block%d/page.go", count), code)
		}
	}
	require.Positive(t, count)
	encoded, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, encoded, 0o600))
	arguments := []string{"build", "-overlay", file}
	for i := range count {
		arguments = append(arguments, fmt.Sprintf("./docs/testdata-of-pages/block%d", i+1))
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = top
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}

// TestGoTestsStopTheServerLast: a deferred stop runs before the clean-up of kwokdratest, which
// then finds no API server.
func TestGoTestsStopTheServerLast(t *testing.T) {
	t.Parallel()
	for _, page := range userPages(t) {
		for _, block := range goBlock.FindAllStringSubmatch(read(t, page), -1) {
			require.NotRegexp(t, `defer .*Stop\(\)`, block[1], page)
		}
	}
}
