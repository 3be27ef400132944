package cli

import (
	"errors"
	"fmt"
	"strings"
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
	require.EqualError(t, NoArguments(plain, []string{"x"}), `unexpected argument "x": version takes none`)

	node := &cobra.Command{Use: "node NAME"}
	one := OneArgument("NAME")
	require.NoError(t, one(node, []string{"a"}))
	require.EqualError(t, one(node, nil), "NAME is missing: node NAME")
	require.EqualError(t, one(node, []string{"a", "b"}), `unexpected argument "b": give one NAME`)
}

// TestFlagError says what a flag must be, and nothing of how it is parsed.
func TestFlagError(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		`parse --nodes "abc": must be a whole number`:                   {"--nodes", "abc"},
		`parse --nodes "1.5": must be a whole number`:                   {"--nodes=1.5"},
		`parse --nodes "99999999999999999999": the number is too large`: {"--nodes=99999999999999999999"},
		`parse --qps "abc": must be a number`:                           {"--qps", "abc"},
		`parse --watch "yes": must be true or false`:                    {"--watch=yes"},
		`parse --own "x": must be a or b`:                               {"--own", "x"},
		`parse --part "x": must be c`:                                   {"--part", "x"},
		`parse --part "x,y": "x": must be c`:                            {"--part", "x,y"},
		"unknown flag --node: did you mean --nodes?":                    {"--node", "3"},
		"unknown flag --colour: list them with command --help":          {"--colour"},
		"unknown shorthand flag: 'x' in -x":                             {"-x"},
		"flag needs an argument: --nodes":                               {"--nodes"},
	} {
		command := &cobra.Command{Use: "command"}
		command.Flags().Int("nodes", 0, "")
		command.Flags().Float32("qps", 0, "")
		command.Flags().Bool("watch", false, "")
		command.Flags().Func("own", "", func(string) error { return errors.New("must be a or b") })
		command.Flags().Func("part", "", func(text string) error {
			part, _, _ := strings.Cut(text, ",")
			return fmt.Errorf("%q: must be c", part)
		})
		require.EqualError(t, FlagError(command, command.ParseFlags(arguments)), want)
	}
}
