package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Subcommand refuses the arguments of a command that has only sub-commands: they
// are the name of none.
func Subcommand(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	var names []string
	for _, child := range command.Commands() {
		names = append(names, child.Name())
	}
	of := strings.TrimPrefix(strings.TrimPrefix(command.CommandPath(), command.Root().CommandPath()), " ")
	if of != "" {
		of += " "
	}
	if nearest := suggest.Nearest(arguments[0], names); nearest != "" {
		return fmt.Errorf("unknown command %q: did you mean %s%s?", of+arguments[0], of, nearest)
	}
	return fmt.Errorf("unknown command %q: it is one of %s", of+arguments[0], strings.Join(names, ", "))
}
