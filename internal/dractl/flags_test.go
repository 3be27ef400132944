package dractl

import (
	"maps"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
)

// meanings says what a flag means in all commands whose texts for it differ.
var meanings = map[string]string{
	"all-namespaces": "look into all namespaces",
	"cdi":            "folder of CDI specs",
	"config-map":     "the ConfigMap that carries templates",
	"control-plane":  "directory with the programs of a cluster to start",
	"driver":         "name of a driver",
	"filename":       "what to read",
	"from-cluster":   "take what the cluster has",
	"node":           "name of a node",
	"nodes":          "number of nodes to make",
	"only":           "which statements, by a regular expression for their ids",
	"output":         "format of what is printed",
	"plugins-dir":    "the directory that kwok-dra has as --plugins-dir",
	"settle":         "how long what is wrong at rest must stay wrong",
	"state":          "state of what is shown",
	"timeout":        "time that something may take",
}

// valueOf is the type of one value of a flag that takes several, or one for each template.
func valueOf(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); kind {
	case "stringSlice", "stringArray":
		return "string"
	case "counts":
		return "int"
	default:
		return kind
	}
}

// TestFlagsMeanOneThing: who knows a flag of one command knows it in all. Two texts for a flag
// need a meaning that holds for both.
func TestFlagsMeanOneThing(t *testing.T) {
	t.Parallel()
	first := map[string]*pflag.Flag{}
	shorthands, where, differing := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, command := range allCommands(New(cli.Streams{})) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Hidden { // it says which flag is meant
				return
			}
			if flag.Shorthand != "" {
				require.Contains(t, []string{"", flag.Name}, shorthands[flag.Shorthand], "-%s of %s", flag.Shorthand, command.CommandPath())
				shorthands[flag.Shorthand] = flag.Name
			}
			known := first[flag.Name]
			if known == nil {
				first[flag.Name], where[flag.Name] = flag, command.CommandPath()
				return
			}
			of := "--" + flag.Name + " of " + where[flag.Name] + " and " + command.CommandPath()
			require.Equal(t, valueOf(known), valueOf(flag), of)
			require.Equal(t, known.Shorthand, flag.Shorthand, of)
			if known.Usage != flag.Usage {
				differing[flag.Name] = true
				require.Contains(t, meanings, flag.Name, "%s: %q and %q", of, known.Usage, flag.Usage)
			}
		})
	}
	require.Equal(t, slices.Sorted(maps.Keys(differing)), slices.Sorted(maps.Keys(meanings)))
}

// allCommands are a command and all below it, without those of cobra.
func allCommands(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, child := range command.Commands() {
		if child.Name() != "completion" && child.Name() != "help" {
			all = append(all, allCommands(child)...)
		}
	}
	return all
}
