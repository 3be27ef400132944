package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// What a manager needs when it is a process on this machine, and not in a Pod.

// kustomization are the manifests of a project in the folders given, a Service, and a
// component that leads the webhooks to the Service.
type kustomization struct {
	dir, component string
	given          []string
	service        map[string]any
	// namespace is that of all objects. Optional.
	namespace string
}

// write writes it into its folder.
func (k kustomization) write() error {
	resources := []string{"service.yaml"}
	for _, folder := range k.given {
		resource, err := filepath.Rel(k.dir, folder)
		if err != nil {
			return fmt.Errorf("find manifests: %w", err)
		}
		resources = append(resources, resource)
	}
	components, err := filepath.Rel(k.dir, k.component)
	if err != nil {
		return fmt.Errorf("find changes of manifests: %w", err)
	}
	if err := writeYAML(filepath.Join(k.dir, "service.yaml"), k.service); err != nil {
		return err
	}
	content := map[string]any{"resources": resources, "components": []string{components}}
	if k.namespace != "" {
		content["namespace"] = k.namespace
	}
	return writeYAML(filepath.Join(k.dir, "kustomization.yaml"), content)
}

// loopbackService leads the API server to the webhooks of a process.
func loopbackService(metadata map[string]any, port int) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   metadata,
		"spec": map[string]any{
			"type":         "ExternalName",
			"externalName": "127.0.0.1",
			"ports":        []map[string]any{{"port": port}},
		},
	}
}

// writeConfiguration writes the configuration in the file given, with settings.
func writeConfiguration(file, given string, settings map[string]any) error {
	content, err := os.ReadFile(given)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var configuration map[string]any
	if err := yaml.Unmarshal(content, &configuration); err != nil {
		return fmt.Errorf("read configuration %s: %w", given, err)
	}
	merge(configuration, settings)
	return writeYAML(file, configuration)
}

func writeYAML(file string, content any) error {
	document, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := os.WriteFile(file, document, 0o600); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// merge writes the values of one document into another, which keeps all else.
func merge(into, from map[string]any) {
	for key, value := range from {
		part, ok := value.(map[string]any)
		there, both := into[key].(map[string]any)
		if ok && both {
			merge(there, part)
			continue
		}
		into[key] = value
	}
}
