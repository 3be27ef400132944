package overlay

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// StagesName is the name of the ConfigMap with the Stages, and of the Job that
// applies them.
const StagesName = "kwok-dra-stages"

// Manifest renders install.yaml of a version: all that one "kubectl apply -f"
// installs into an empty cluster. The overlay alone would not do: kubectl refuses
// objects whose definition is in the same file.
func (c *Checkout) Manifest(version string) ([]byte, error) {
	objects, err := c.Render(Variant{Overlay: "kwok", Components: []string{"install"}, Tag: version})
	if err != nil {
		return nil, err
	}
	rest, stages := SplitStages(objects)
	text, err := YAML(stages)
	if err != nil {
		return nil, err
	}
	for _, object := range rest {
		if object.Kind() == "Job" {
			// The template of a Job cannot be changed, so each version has its own.
			object["metadata"].(map[string]any)["name"] = StagesName + "-" + strings.ToLower(version)
		}
	}
	rest = append(rest, Object{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": StagesName, "namespace": "kube-system"},
		"data":       map[string]any{"stages.yaml": string(text)},
	})
	text, err = YAML(rest)
	heading := fmt.Sprintf("# kwok-dra %s with kwok 0.8 and the fast Stages. Install with: kubectl apply -f install.yaml\n", version)
	return append([]byte(heading), text...), err
}

// SplitStages tells Stages from all other objects.
func SplitStages(objects []Object) (rest, stages []Object) {
	for _, object := range objects {
		if object.Kind() == "Stage" {
			stages = append(stages, object)
		} else {
			rest = append(rest, object)
		}
	}
	return rest, stages
}

// YAML writes objects as documents of one file.
func YAML(objects []Object) ([]byte, error) {
	var all bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(map[string]any(object))
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", object.ID(), err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	return all.Bytes(), nil
}
