package build

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

func TestCheckout(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	t.Setenv(CacheEnv, cache)
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	write("go.mod", "module example.com/unpublished\n\ngo 1.26\n")
	write("cmd/greet/main.go", "package main\n\nfunc main() { println(\"first\") }\n")
	write("cmd/greet/main_test.go", "package main\n\nimport \"testing\"\n\nfunc TestGreet(t *testing.T) { main() }\n")
	c := Checkout{Module: module.Version{Path: "example.com/unpublished", Version: "0123456789ab"}, Dir: dir}
	const command = "example.com/unpublished/cmd/greet"

	var output bytes.Buffer
	program, err := c.EnsureCommand(t.Context(), command, &output)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "unpublished-0123456789ab-greet", "greet"), program)
	require.Contains(t, output.String(), "[1/1] "+command+" 0123456789ab: done in ")
	requireSays(t, program, "first\n")

	write("cmd/greet/main.go", "package main\n\nfunc main() { println(\"second\") }\n")
	_, err = c.EnsureCommand(t.Context(), command, &output)
	require.NoError(t, err)
	requireSays(t, program, "first\n")
	c.Changed = true
	_, err = c.EnsureCommand(t.Context(), command, &output)
	require.NoError(t, err)
	requireSays(t, program, "second\n")

	c.Module.Version = "ba9876543210"
	tests, err := c.EnsureTests(t.Context(), command, &output)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(cache, "unpublished-ba9876543210-greet", "e2e.test"), tests)
	require.NoError(t, exec.Command(tests, "-test.run=TestGreet").Run())
	requireEntries(t, dir, "go.mod", "cmd")
}

func requireSays(t *testing.T, program, want string) {
	t.Helper()
	said, err := exec.Command(program).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, want, string(said))
}
