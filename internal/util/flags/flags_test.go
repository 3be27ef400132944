package flags

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestError says what a flag must be, and nothing of how it is parsed.
func TestError(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		`parse --nodes "abc": must be a whole number`:                   {"--nodes", "abc"},
		`parse --nodes "1.5": must be a whole number`:                   {"--nodes=1.5"},
		`parse --nodes "99999999999999999999": the number is too large`: {"--nodes=99999999999999999999"},
		`parse --qps "abc": must be a number`:                           {"--qps", "abc"},
		`parse -v "x": must be a whole number`:                          {"-v", "x"},
		`parse --watch "yes": must be true or false`:                    {"--watch=yes"},
		`parse --own "x": must be a or b`:                               {"--own", "x"},
		`parse --part "x": must be c`:                                   {"--part", "x"},
		`parse --part "x,y": "x": must be c`:                            {"--part", "x,y"},
		"unknown flag --node: did you mean --nodes?":                    {"--node", "3"},
		"unknown flag --colour: list them with command --help":          {"--colour"},
		"unknown shorthand flag: 'x' in -x":                             {"-x"},
		"flag needs an argument: --nodes":                               {"--nodes"},
	} {
		flags := pflag.NewFlagSet("command", pflag.ContinueOnError)
		flags.Int("nodes", 0, "")
		flags.Float32("qps", 0, "")
		flags.IntP("v", "v", 0, "")
		flags.Bool("watch", false, "")
		flags.Func("own", "", func(string) error { return errors.New("must be a or b") })
		flags.Func("part", "", func(text string) error {
			part, _, _ := strings.Cut(text, ",")
			return fmt.Errorf("%q: must be c", part)
		})
		require.EqualError(t, Error(flags, "command", flags.Parse(arguments)), want)
	}
}
