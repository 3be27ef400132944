package story

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// WriteYAML writes a story so that Read reads it again. The fields of a step come in the order in time.
func (s *Story) WriteYAML(w io.Writer) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "id: %s\nseed: %d\nsteps:\n", s.ID, s.Seed)
	for i := range s.Steps {
		step := reflect.ValueOf(s.Steps[i])
		indent := "- "
		for f := range step.NumField() {
			if step.Field(f).IsZero() {
				continue
			}
			name, _, _ := strings.Cut(step.Type().Field(f).Tag.Get("json"), ",")
			field, err := yaml.Marshal(map[string]any{name: step.Field(f).Interface()})
			if err != nil {
				return fmt.Errorf("write step %d of story %s: %w", i+1, s.ID, err)
			}
			for line := range strings.Lines(string(field)) {
				text.WriteString(indent + line)
				indent = "  "
			}
		}
	}
	_, err := w.Write(text.Bytes())
	return err
}

// Read reads what WriteYAML has written.
func Read(data []byte) (*Story, error) {
	s := &Story{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("read story: %w", err)
	}
	return s, nil
}
