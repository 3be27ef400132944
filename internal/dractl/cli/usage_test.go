package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	plain, reads := &cobra.Command{Use: "version"}, &cobra.Command{Use: "validate"}
	reads.Flags().StringArrayP("filename", "f", nil, "")
	require.NoError(t, NoArguments(reads, nil))
	require.EqualError(t, NoArguments(reads, []string{"gpus.yaml", "b"}), `unexpected argument "gpus.yaml": use -f gpus.yaml`)
	generates := &cobra.Command{Use: "generate"}
	generates.Flags().String("profile", "", "")
	require.EqualError(t, NoArguments(generates, []string{"nvidia-h100"}), `unexpected argument "nvidia-h100": use --profile nvidia-h100, or -f for a file`)
	require.EqualError(t, NoArguments(plain, []string{"x"}), `unexpected argument "x": version takes none`)

	node := &cobra.Command{Use: "node NAME"}
	one := OneArgument("NAME")
	require.NoError(t, one(node, []string{"a"}))
	require.EqualError(t, one(node, nil), "NAME is missing: node NAME")
	require.EqualError(t, one(node, []string{"a", "b"}), `unexpected argument "b": give one NAME`)
}

// TestExclusive refuses two flags of a group, in the user's words.
func TestExclusive(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		"": {"--a", "1"},
		"--a and --b exclude each other: give one of them": {"--a", "1", "--b", "2"},
		"--b and --c exclude each other: give one of them": {"--c", "1", "--b", "2"},
	} {
		command := &cobra.Command{Use: "command", Run: func(*cobra.Command, []string) {}, SilenceErrors: true, SilenceUsage: true}
		for _, name := range []string{"a", "b", "c"} {
			command.Flags().String(name, "", "")
		}
		Exclusive(command, "a", "b")
		Exclusive(command, "b", "c")
		command.SetArgs(arguments)
		if want == "" {
			require.NoError(t, command.Execute())
			continue
		}
		require.EqualError(t, command.Execute(), want)
	}
}
