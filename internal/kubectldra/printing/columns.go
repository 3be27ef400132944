package printing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

// column is a column of -o custom-columns.
type column struct {
	header string
	path   *jsonpath.JSONPath
}

// parseColumns parses HEADER:PATH,HEADER:PATH, with the short form of paths that kubectl reads.
func parseColumns(spec string) ([]column, error) {
	if spec == "" {
		return nil, errors.New("parse -o custom-columns: columns are missing: write -o custom-columns=NAME:.name,STATE:.state")
	}
	var columns []column
	for part := range strings.SplitSeq(spec, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found || header == "" || path == "" {
			return nil, fmt.Errorf("parse -o custom-columns: %q is not HEADER:PATH", part)
		}
		parsed := jsonpath.New(header).AllowMissingKeys(true)
		if err := parsed.Parse("{." + strings.TrimPrefix(strings.Trim(path, "{}"), ".") + "}"); err != nil {
			return nil, fmt.Errorf("parse -o custom-columns: path %q: %w", path, err)
		}
		columns = append(columns, column{header, parsed})
	}
	return columns, nil
}

func printColumns(out io.Writer, columns []column, items []any, noHeaders bool) error {
	table := &output.Rows{}
	for _, column := range columns {
		table.Columns = append(table.Columns, output.Column{Name: column.header})
	}
	for _, item := range items {
		cells := make([]string, len(columns))
		for i, column := range columns {
			var err error
			if cells[i], err = column.valueOf(item); err != nil {
				return err
			}
		}
		table.Add(cells...)
	}
	return output.Tables{table}.Print(out, output.Layout{NoHeaders: noHeaders})
}

// valueOf returns the values at the path, joined by commas, or <none>.
func (c column) valueOf(item any) (string, error) {
	found, err := c.path.FindResults(item)
	if err != nil {
		return "", fmt.Errorf("print column %s: %w", c.header, err)
	}
	var values []string
	for _, results := range found {
		for i := range results {
			var text bytes.Buffer
			if err := c.path.PrintResults(&text, results[i:i+1]); err != nil {
				return "", fmt.Errorf("print column %s: %w", c.header, err)
			}
			values = append(values, text.String())
		}
	}
	return output.OrNone(values...), nil
}
