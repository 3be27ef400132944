package main

import (
	"github.com/spf13/pflag"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions"
)

// options lists the sidecar's options.
func options(string) (string, error) {
	return flagTable(app.NewOptions(extensions.All()...).Flags()), nil
}

// flagTable lists flags in their order.
func flagTable(flags *pflag.FlagSet) string {
	var rows [][]string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		name := code("--" + flag.Name)
		switch {
		case len(flag.Name) == 1:
			name = code("-" + flag.Name)
		case flag.Shorthand != "":
			name = code("-"+flag.Shorthand) + ", " + name
		}
		rows = append(rows, []string{name, flagType(flag), code(flagDefault(flag)), capitalized(flag.Usage)})
	})
	return table([]string{"option", "type", "default", "meaning"}, rows)
}

// flagType is the type in a user's words.
func flagType(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); kind {
	case "stringArray", "stringSlice":
		return "string, repeatable"
	case "int", "int32", "Level":
		return "integer"
	case "float32", "float64":
		return "number"
	default:
		return kind
	}
}

// flagDefault leaves out what only says that there is none.
func flagDefault(flag *pflag.Flag) string {
	if flag.DefValue == "[]" {
		return ""
	}
	return flag.DefValue
}
