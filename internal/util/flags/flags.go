package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Error rewrites the error of parsing flags. The command is what the user types to
// run the program, for the hint to its help.
func Error(flags *pflag.FlagSet, command string, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if unknown.GetSpecifiedShortnames() != "" {
			return unknown
		}
		name := unknown.GetSpecifiedName()
		var names []string
		flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if nearest := suggest.Nearest(name, names); nearest != "" {
			return fmt.Errorf("unknown flag --%s: did you mean --%s?", name, nearest)
		}
		return fmt.Errorf("unknown flag --%s: list them with %s --help", name, command)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag, value := invalid.GetFlag(), fmt.Sprintf("%q", invalid.GetValue())
	problem := strings.TrimPrefix(errors.Unwrap(invalid).Error(), value+": ")
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		switch {
		case flag.Value.Type() == "bool":
			problem = "must be true or false"
		case errors.Is(number, strconv.ErrRange):
			problem = "the number is too large"
		case slices.Contains([]string{"float32", "float64"}, flag.Value.Type()):
			problem = "must be a number"
		default:
			problem = "must be a whole number"
		}
	}
	dashes := "--"[:min(2, len(flag.Name))] // as the user types it
	return fmt.Errorf("parse %s%s %s: %s", dashes, flag.Name, value, problem)
}
