package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeFiles writes files below a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// serveModules has the go command ask a proxy that is a folder, with the given versions of modules.
func serveModules(t *testing.T, modules map[string][]string) {
	t.Helper()
	proxy := t.TempDir()
	for module, versions := range modules {
		var list bytes.Buffer
		for _, version := range versions {
			list.WriteString(version + "\n")
			writeFiles(t, proxy, map[string]string{
				module + "/@v/" + version + ".info": `{"Version": "` + version + `", "Time": "2026-01-02T03:04:05Z"}`,
				module + "/@v/" + version + ".mod":  "module " + module + "\n",
			})
		}
		writeFiles(t, proxy, map[string]string{module + "/@v/list": list.String()})
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-modcacherw") // else the files cannot be removed
	t.Setenv("GOMODCACHE", t.TempDir())
}

func TestCollectPins(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFiles(t, root, map[string]string{
		"go.mod": `module example.com/product
require example.com/direct v1.0.0
require example.com/indirect v1.0.0 // indirect
`,
		"test/go.mod": `module example.com/product/test
require (
	example.com/direct v1.0.0
	example.com/linter v2.0.0+incompatible // indirect
	example.com/product v0.0.0
)
replace example.com/product => ../
tool example.com/linter/cmd/lint
`,
		"test/others/suite.go":      `package others; var suite = module.Version{Path: "example.com/suite", Version: "v0.3.0"}`,
		"test/others/suite_test.go": `package others; var suite = module.Version{Path: "example.com/other", Version: "v0.3.0"}`,
		"Makefile":                  "generate:\n\t$(GO) run example.com/tools/cmd/generator@v0.9.0 object\n",
		"bin/go.mod":                "module example.com/built\nrequire example.com/built v1.0.0\n",
	})
	pins, err := collectPins(t.Context(), root)
	require.NoError(t, err)
	found := map[string][]string{}
	for _, p := range pins {
		found[p.Module+" "+p.Has] = p.UsedIn
		if p.Module == "k8s.io/kubernetes" {
			require.Contains(t, p.Has, p.Minor, "each minor version of Kubernetes has patches of its own")
		}
	}
	for want, usedIn := range map[string][]string{
		"example.com/direct v1.0.0":              {".", "test"},
		"example.com/linter v2.0.0+incompatible": {"test"},
		"example.com/suite v0.3.0":               {"test/others/suite.go"},
		"example.com/tools v0.9.0":               {"Makefile"},
		"sigs.k8s.io/kwok v0.8.0":                {"test/cluster"},
	} {
		require.Equal(t, usedIn, found[want], want)
		delete(found, want)
	}
	for rest := range found {
		require.Regexp(t, `^(k8s.io/kubernetes|go.etcd.io/etcd/server/v3|sigs.k8s.io/kwok) `, rest)
	}
}

func TestAskProxy(t *testing.T) {
	const longPath = "example.com/with-a-long-path/that-has/several-parts/of-it"
	serveModules(t, map[string][]string{
		"example.com/behind":  {"v1.0.0", "v1.2.0", "v1.3.0-rc.1"},
		"example.com/current": {"v0.4.0"},
		"example.com/patched": {"v1.36.3", "v1.36.5", "v1.37.0"},
		longPath:              {"v0.1.0"},
	})
	pins := []pin{
		{Module: "example.com/behind", Has: "v1.0.0", UsedIn: []string{".", "test", "test/others", "test/others/suite.go"}},
		{Module: "example.com/behind", Has: "v1.2.0", UsedIn: []string{"test/karpenter"}},
		{Module: "example.com/current", Has: "v0.4.1-0.20260102030405-0123456789ab", UsedIn: []string{"."}},
		{Module: "example.com/nowhere", Has: "v1.0.0", UsedIn: []string{"Makefile"}},
		{Module: "example.com/patched", Has: "v1.36.3", Minor: "v1.36", UsedIn: []string{"test/cluster"}},
		{Module: longPath, Has: "v0.0.0-20260102030405-0123456789ab", UsedIn: []string{"test/karpenter", "test/karpenter/main.go"}},
	}
	require.NoError(t, askProxy(t.Context(), pins))

	var table bytes.Buffer
	require.NoError(t, printTable(&table, pins))
	require.Equal(t, `MODULE                                USED IN    HAS         NEWEST
example.com/behind                    . +2       v1.0.0      v1.2.0
example.com/nowhere                   Makefile   v1.0.0      unknown
example.com/patched                   cluster    v1.36.3     v1.36.5
example.com/with-a...ral-parts/of-it  karpenter  2026-01-02  v0.1.0
2 of 6 versions are current.
Why 1 are unknown: make outdated ARGS='-o json'
`, table.String())

	var written bytes.Buffer
	require.NoError(t, printJSON(&written, pins))
	var read []pin
	require.NoError(t, json.Unmarshal(written.Bytes(), &read))
	require.Equal(t, pins, read)
	require.Contains(t, read[3].Error, "example.com/nowhere")
}

// TestAskNoProxy: what answers nothing was not asked.
func TestAskNoProxy(t *testing.T) {
	serveModules(t, nil)
	pins := []pin{{Module: "example.com/nowhere", Has: "v1.0.0"}}
	require.ErrorContains(t, askProxy(t.Context(), pins), "ask the module proxy: module example.com/nowhere: ")

	t.Setenv("GOPROXY", "off")
	require.ErrorContains(t, askProxy(t.Context(), []pin{{Module: "example.com/nowhere", Has: "v1.0.0"}}), "ask the module proxy: ")
}

func TestFormat(t *testing.T) {
	t.Parallel()
	require.EqualError(t, run(t.Context(), "yaml", &bytes.Buffer{}), `read -o "yaml": want table or json`)
}
