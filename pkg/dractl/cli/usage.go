package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// NoArguments refuses arguments. If the command reads files, they are meant for
// -f.
func NoArguments(command *cobra.Command, arguments []string) error {
	switch {
	case len(arguments) == 0:
		return nil
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
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(command, unknown, err)
	case errors.As(err, &invalid):
		if number, ok := errors.AsType[*strconv.NumError](err); ok {
			return fmt.Errorf("parse --%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wants(invalid.GetFlag(), number))
		}
		named := fmt.Sprintf("%q: ", invalid.GetValue())
		return fmt.Errorf("parse --%s %s%s", invalid.GetFlag().Name, named, strings.TrimPrefix(errors.Unwrap(invalid).Error(), named))
	}
	return err
}

func unknownFlag(command *cobra.Command, unknown *pflag.NotExistError, err error) error {
	if unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if nearest := suggest.Nearest(name, names); nearest != "" {
		return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, nearest)
	}
	return fmt.Errorf("unknown flag --%s: list them with %s --help", name, command.CommandPath())
}

// wants says what the value of a flag must be.
func wants(flag *pflag.Flag, number *strconv.NumError) string {
	switch {
	case flag.Value.Type() == "bool":
		return "must be true or false"
	case errors.Is(number, strconv.ErrRange):
		return "the number is too large"
	case slices.Contains([]string{"float32", "float64"}, flag.Value.Type()):
		return "must be a number"
	}
	return "must be a whole number"
}
