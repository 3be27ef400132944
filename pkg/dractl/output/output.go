// Package output prints the results of commands in kubectl's formats.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Format is a value of -o.
type Format string

// The formats.
const (
	// Table is for reading; Wide has more columns.
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	// Name is a line for each object, in the form that kubectl reads: kind.group/name.
	Name Format = "name"
)

// Flag is the flag -o of a command.
type Flag struct {
	Format  Format
	allowed []Format
}

// AddTo adds -o to a command, with its formats, the default first.
func (f *Flag) AddTo(command *cobra.Command, allowed ...Format) {
	f.Format, f.allowed = allowed[0], allowed
	command.Flags().VarP(f, "output", "o", "format: "+f.names())
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		for _, format := range f.allowed {
			names = append(names, string(format))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// String and Set implement pflag.Value.
func (f *Flag) String() string { return string(f.Format) }

// Set implements pflag.Value.
func (f *Flag) Set(text string) error {
	if !slices.Contains(f.allowed, Format(text)) {
		return fmt.Errorf("must be %s", f.names())
	}
	f.Format = Format(text)
	return nil
}

// Type implements pflag.Value.
func (f *Flag) Type() string { return "format" }

func (f *Flag) names() string {
	names := make([]string, len(f.allowed))
	for i, format := range f.allowed {
		names[i] = string(format)
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Object is what can be printed: an object of Kubernetes or of kwok-dra.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// Objects prints objects as JSON (a List, where there are several), as YAML
// documents, or by name.
func Objects[O Object](out io.Writer, format Format, objects []O) error {
	for i := range objects {
		setKind(objects[i])
	}
	switch format {
	case Name:
		for _, object := range objects {
			if _, err := fmt.Fprintln(out, nameOf(object)); err != nil {
				return err
			}
		}
		return nil
	case JSON:
		return printJSON(out, objects)
	}
	for i, object := range objects {
		if err := printYAML(out, object, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// setKind fills in apiVersion and kind, which objects from a client lack.
func setKind(object Object) {
	typed, ok := object.(runtime.Object)
	if !ok || !object.GetObjectKind().GroupVersionKind().Empty() {
		return
	}
	if kinds, _, err := scheme.Scheme.ObjectKinds(typed); err == nil {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
}

func nameOf(object Object) string {
	kind := object.GetObjectKind().GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return name + "/" + object.GetName()
}

func printJSON[O Object](out io.Writer, objects []O) error {
	var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": append([]O{}, objects...)}
	if len(objects) == 1 {
		value = objects[0]
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func printYAML(out io.Writer, object Object, separate bool) error {
	data, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", nameOf(object), err)
	}
	if separate {
		data = append([]byte("---\n"), data...)
	}
	_, err = out.Write(data)
	return err
}
