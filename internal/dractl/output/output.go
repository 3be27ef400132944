package output

import (
	"bytes"
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

// IsValue reports whether programs read the format, which has the whole value and no table.
func (f Format) IsValue() bool { return f == JSON || f == YAML }

// Flag is the flag -o of a command.
type Flag struct {
	Format  Format
	allowed []string
}

// AddTo adds -o to a command, with its formats, the default first.
func (f *Flag) AddTo(command *cobra.Command, allowed ...Format) {
	f.Format = allowed[0]
	for _, format := range allowed {
		f.allowed = append(f.allowed, string(format))
	}
	command.Flags().VarP(f, "output", "o", "format: "+f.describeFormats())
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String and Set implement pflag.Value.
func (f *Flag) String() string { return string(f.Format) }

// Set implements pflag.Value.
func (f *Flag) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return fmt.Errorf("must be %s", f.describeFormats())
	}
	f.Format = Format(text)
	return nil
}

// Type implements pflag.Value.
func (f *Flag) Type() string { return "format" }

func (f *Flag) describeFormats() string {
	last := len(f.allowed) - 1
	if last == 0 {
		return f.allowed[0]
	}
	return strings.Join(f.allowed[:last], ", ") + " or " + f.allowed[last]
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
	if format == JSON {
		if len(objects) == 1 {
			return Value(out, JSON, objects[0])
		}
		return Value(out, JSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": append([]O{}, objects...)})
	}
	var text bytes.Buffer
	for i, object := range objects {
		if format == Name {
			fmt.Fprintln(&text, resourceName(object))
			continue
		}
		data, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", resourceName(object), err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(data)
	}
	_, err := out.Write(text.Bytes())
	return err
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

func resourceName(object Object) string {
	kind := object.GetObjectKind().GroupVersionKind()
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return name + "/" + object.GetName()
}
