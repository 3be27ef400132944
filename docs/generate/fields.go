package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const groupName = v1alpha1.GroupName

// schema is what is shown of an OpenAPI schema.
type schema struct {
	Description          string            `json:"description"`
	Type                 string            `json:"type"`
	Required             []string          `json:"required"`
	Properties           map[string]schema `json:"properties"`
	Items                *schema           `json:"items"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	IntOrString          bool              `json:"x-kubernetes-int-or-string"`
	Pattern              string            `json:"pattern"`
}

// upstream are fields whose content Kubernetes and KWOK define.
var upstream = []string{"nodeSelector", "taints", "consumesCounters", "nodeAllocatableResources", "publishWhen", "retireWhen", "prepareWhen", "failWhen", "unprepareWhen", "conditions"}

// alike are fields whose content is that of another one, which is unfolded.
var alike = []string{"perDevice", "perRequest"}

// fieldsOf lists the fields of a kind by its custom resource definition, which is
// made from the Go types.
func fieldsOf(resource string) func(string) (string, error) {
	return func(root string) (string, error) {
		file := filepath.Join(root, "kustomize", "crd", groupName+"_"+resource+".yaml")
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read a definition: %w", err)
		}
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema schema `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			return "", fmt.Errorf("decode %s: %w", file, err)
		}
		object := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		var rows [][]string
		for _, name := range []string{"spec", "status"} {
			rows = append(rows, fields(name, object.Properties[name])...)
		}
		return table([]string{"field", "type", "required", "meaning"}, rows), nil
	}
}

// fields lists the fields below one.
func fields(path string, of schema) [][]string {
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		field := of.Properties[name]
		required := ""
		if slices.Contains(of.Required, name) {
			required = "yes"
		}
		meaning := strings.ReplaceAll(oneLine(field.Description), "<", "&lt;")
		below, at := field, path+"."+name
		if field.Items != nil && field.Items.Properties != nil {
			below, at = *field.Items, at+"[]"
		}
		rows = append(rows, []string{code(at), fieldType(field), required, meaning})
		if !slices.Contains(upstream, name) && !slices.Contains(alike, name) {
			rows = append(rows, fields(at, below)...)
		}
	}
	return rows
}

// fieldType is the type of a field in a user's words.
func fieldType(of schema) string {
	switch {
	case of.IntOrString && of.Pattern == "":
		return "integer or string"
	case of.IntOrString:
		return "quantity"
	case of.Items != nil:
		return "list of " + fieldType(*of.Items)
	case of.AdditionalProperties != nil:
		return "map to " + fieldType(*of.AdditionalProperties)
	case of.Type == "":
		return "any"
	}
	return of.Type
}
