package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/util/flags"
)

// NoArguments refuses arguments. If the command has profiles or files, they are
// meant for --profile or -f.
func NoArguments(command *cobra.Command, arguments []string) error {
	switch {
	case len(arguments) == 0:
		return nil
	case command.Flags().Lookup("profile") != nil:
		return fmt.Errorf("unexpected argument %q: use --profile %s, or -f for a file", arguments[0], arguments[0])
	case command.Flags().Lookup("filename") != nil:
		return fmt.Errorf("unexpected argument %q: use -f %s", arguments[0], arguments[0])
	}
	return fmt.Errorf("unexpected argument %q: %s takes none", arguments[0], command.CommandPath())
}

// OneArgument refuses all but one argument, which the error calls by its name.
func OneArgument(name string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		switch len(arguments) {
		case 0:
			return fmt.Errorf("%s is missing: %s", name, command.UseLine())
		case 1:
			return nil
		}
		return fmt.Errorf("unexpected argument %q: give one %s", arguments[1], name)
	}
}

// FlagError says in the user's words what is wrong with a flag.
func FlagError(command *cobra.Command, err error) error {
	return flags.Error(command.Flags(), command.CommandPath(), err)
}

// Exclusive refuses two of these flags in one command line.
func Exclusive(command *cobra.Command, names ...string) {
	command.MarkFlagsMutuallyExclusive(names...) // completion leaves out the others
	before := command.PreRunE
	// cobra's own message, which names the group, comes after PreRunE.
	command.PreRunE = func(command *cobra.Command, arguments []string) error {
		var given []string
		for _, name := range names {
			if command.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return fmt.Errorf("%s exclude each other: give one of them", strings.Join(given, " and "))
		}
		if before == nil {
			return nil
		}
		return before(command, arguments)
	}
}
