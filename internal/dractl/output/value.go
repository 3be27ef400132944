package output

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Value prints as JSON or YAML what is not an object of Kubernetes.
func Value(out io.Writer, format Format, value any) error {
	if format == JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = out.Write(data)
	return err
}
