package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// mainEnv makes the test program gorun.
const mainEnv = "KWOK_DRA_TEST_GORUN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func gorun(t *testing.T, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	output, err := gorun(t, "test/cluster", "./cmd/cluster", "help")
	require.NoError(t, err, output)
	require.Contains(t, output, "Compiling test/cluster/cmd/cluster: done in ")
	require.Contains(t, output, "Usage: cluster COMMAND")
}

func TestAnnouncement(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Compiling the 603 packages of test/tools/demo. With 2 cores this takes 2 to 4 minutes the first time, seconds later.", announceBuild("test/tools/demo", 603, 2))
	require.Contains(t, announceBuild("x", 10, 64), "With 64 cores this takes 1 to 2 minutes")
}

func TestFailures(t *testing.T) {
	t.Parallel()
	output, err := gorun(t, "test/cluster", "./cmd/nothing")
	require.Error(t, err)
	require.Contains(t, output, "gorun: compile ./cmd/nothing: exit status 1")
	require.Contains(t, output, "directory not found")

	output, err = gorun(t, "test/nothing", "./x")
	require.Error(t, err)
	require.Contains(t, output, "gorun: enter the module of ./x: ")

	output, err = gorun(t, "test/cluster", "./cmd/cluster", "nothing")
	require.Error(t, err, "the program's exit status is that of gorun")
	require.Contains(t, output, `cluster: run "nothing"`)

	output, err = gorun(t)
	require.Error(t, err)
	require.Contains(t, output, "usage: gorun DIRECTORY PACKAGE")
}
