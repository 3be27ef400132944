package view

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var strange = []string{
	"b=1", "B=2", "_A=3", "EMPTY=", "SP=a b", `Q=a"b$c` + "`d`" + `\e!`, "SINGLE=it's", "NL=x\ny's\\", "TAB=x\ty", "ESC=\x1b[0m\x01", "a.b=hidden", "x-y=hidden",
}

func TestExports(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`declare -x B="2"`,
		`declare -x EMPTY=""`,
		`declare -x ESC=$'\E[0m\001'`,
		`declare -x NL=$'x\ny\'s\\'`,
		"declare -x Q=\"a\\\"b\\$c\\`d\\`\\\\e!\"",
		`declare -x SINGLE="it's"`,
		`declare -x SP="a b"`,
		`declare -x TAB=$'x\ty'`,
		`declare -x _A="3"`,
		`declare -x b="1"`,
	}, lines(exportVariables(strange, []string{"/bin/bash", "-c"})))
	require.Empty(t, exportVariables([]string{"no variable", "=x"}, nil))
	require.Equal(t, []string{"export A='it'\"'\"'s\n", "2'\n", "export B=''\n"}, exportVariables([]string{"B=", "A=it's\n2"}, []string{"/bin/ash"}))
}

// lines are without their ends.
func lines(all []string) []string {
	return strings.Split(strings.TrimSuffix(strings.Join(all, ""), "\n"), "\n")
}

// TestExportsAsShells compares with the shells themselves, where they are here.
func TestExportsAsShells(t *testing.T) {
	t.Parallel()
	for shell, arguments := range map[string][]string{"bash": {"--norc", "-c", "export"}, "dash": {"-c", "export"}} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("it is not here")
			}
			command := exec.CommandContext(t.Context(), program, arguments...)
			command.Env = strange
			output, err := command.Output()
			require.NoError(t, err)
			var printed []string
			for line := range strings.Lines(string(output)) {
				own := strings.Contains(line, " PWD") || strings.Contains(line, " OLDPWD") || strings.Contains(line, " SHLVL")
				if !own {
					printed = append(printed, line)
				}
			}
			require.Equal(t, printed, exportVariables(strange, []string{shell}))
		})
	}
}

func TestCRILog(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 20, 12, 0, 0, 5, time.FixedZone("", 3600))
	require.Equal(t, "2026-07-20T11:00:00.000000005Z stdout F a\n2026-07-20T11:00:00.000000005Z stdout F b\n", criLog(at, []string{"a\n", "b\n"}))
	require.Empty(t, criLog(at, nil))
}
