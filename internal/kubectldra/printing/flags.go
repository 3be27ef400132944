package printing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
)

// Flags are kubectl's flags that choose how an answer is printed.
type Flags struct {
	print     *genericclioptions.PrintFlags
	noHeaders bool
}

// NewFlags makes flags that are not set.
func NewFlags() *Flags {
	return &Flags{print: genericclioptions.NewPrintFlags("")}
}

const (
	wide          = "wide"
	name          = "name"
	customColumns = "custom-columns"
)

// AddTo adds the flags to a command.
func (f *Flags) AddTo(command *cobra.Command) {
	f.print.AddFlags(command)
	formats := append([]string{wide, customColumns}, f.print.AllowedFormats()...)
	slices.Sort(formats)
	command.Flags().Lookup("output").Usage = "Output format. One of: (" + strings.Join(formats, ", ") + ")."
	command.Flags().BoolVar(&f.noHeaders, "no-headers", false, "When using the default or custom-column output format, don't print headers (default print headers).")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// IsForPeople reports whether the answer is printed as tables. Then lines around the tables help, which would
// break the objects for programs.
func (f *Flags) IsForPeople() bool {
	template := f.print.TemplatePrinterFlags.TemplateArgument
	return *f.print.OutputFormat == wide || *f.print.OutputFormat == "" && (template == nil || *template == "")
}

// Named is an object that -o name can print.
type Named interface {
	// ResourceName is kubectl's name of the object, such as pod/train-0.
	ResourceName() string
}

// Validate refuses a format that does not exist, before anything is read.
func (f *Flags) Validate() error {
	switch format, argument, _ := strings.Cut(*f.print.OutputFormat, "="); {
	case f.IsForPeople(), format == name:
		return nil
	case format == customColumns:
		_, err := parseColumns(argument)
		return err
	}
	_, err := f.print.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("parse -o %s: it is one of %s, %s and %s", *f.print.OutputFormat, strings.Join(f.print.AllowedFormats(), ", "), wide, customColumns)
	}
	return err
}

// Print prints tables for people, or objects as the items of a List for programs.
func (f *Flags) Print(out io.Writer, tables output.Tables, objects []any) error {
	format, argument, _ := strings.Cut(*f.print.OutputFormat, "=")
	switch {
	case f.IsForPeople():
		return tables.Print(out, f.Layout(out))
	case format == name:
		return printNames(out, objects)
	}
	items, err := asItems(objects)
	if err != nil {
		return err
	}
	if format == customColumns {
		columns, err := parseColumns(argument)
		if err != nil {
			return err
		}
		return printColumns(out, columns, items, f.noHeaders)
	}
	printer, err := f.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List", "items": items}}, out)
}

// Layout says how tables are printed to a writer: as wide as the terminal, and with colours on a terminal only.
func (f *Flags) Layout(out io.Writer) output.Layout {
	layout := output.Layout{Format: output.Table, Width: screen.Width(out), NoHeaders: f.noHeaders, Colours: screen.Of(out) != nil && os.Getenv("NO_COLOR") == ""}
	if *f.print.OutputFormat == wide {
		layout.Format = output.Wide
	}
	return layout
}

func printNames(out io.Writer, objects []any) error {
	var names []string
	for _, object := range objects {
		named, ok := object.(Named)
		if !ok {
			return errors.New("parse -o name: what the command shows has no names: use -o json")
		}
		if resource := named.ResourceName(); !slices.Contains(names, resource) {
			names = append(names, resource)
		}
	}
	for _, resource := range names {
		if _, err := fmt.Fprintln(out, resource); err != nil {
			return err
		}
	}
	return nil
}

// asItems converts objects to what they are as JSON.
func asItems(objects []any) ([]any, error) {
	items := []any{}
	data, err := json.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return items, nil
}
