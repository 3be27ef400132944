package sidecar

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// containerEnvironment returns the variables of the container in the manifests, so that the
// process runs as in a Pod. Those of the caller replace them.
func containerEnvironment() ([]string, error) {
	path := filepath.Join(Root(), "kustomize", "sidecar", "container.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the container of kwok-dra: %w", err)
	}
	var patch []struct {
		Value struct {
			Env []struct{ Name, Value string }
		}
	}
	if err := yaml.Unmarshal(text, &patch); err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	var variables []string
	for _, operation := range patch {
		for _, variable := range operation.Value.Env {
			variables = append(variables, variable.Name+"="+variable.Value)
		}
	}
	return variables, nil
}
