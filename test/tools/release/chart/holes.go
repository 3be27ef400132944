package chart

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
)

// namespace is that of the overlays; the chart is for any.
const namespace = "kube-system"

// expressions are what holes in objects are filled with, when Helm renders them.
var expressions = strings.NewReplacer(
	"<%namespace%>", "{{ .Release.Namespace }}",
	"<%replicas%>", "{{ .Values.replicas }}",
	"<%image%>", "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}",
	"<%pullPolicy%>", "{{ .Values.image.pullPolicy }}",
	"<%env%>", "{{ toJson .Values.env }}",
	"<%resources%>", "{{ toJson .Values.resources }}",
	"<%kwokImage%>", "{{ .Values.kwok.image.repository }}:{{ .Values.kwok.image.tag }}{{ with .Values.kwok.image.digest }}@{{ . }}{{ end }}",
)

// extraArgs is the element of a list that stands for any number of them.
var extraArgs = regexp.MustCompile(`(?m)^( *)- <%extraArgs%>$`)

// fill puts the expressions of Helm into the text of an object.
func fill(text string) string {
	text = extraArgs.ReplaceAllString(text, "{{- range .Values.extraArgs }}\n$1- {{ . | quote }}\n{{- end }}")
	return expressions.Replace(text)
}

// cutHoles returns an object with holes for what users may choose.
func cutHoles(object overlay.Object) (map[string]any, error) {
	if object.Kind() == "CustomResourceDefinition" {
		return object, nil // Helm does not render these
	}
	copied, err := replaceStrings(map[string]any(object))
	if err != nil {
		return nil, err
	}
	made := copied.(map[string]any)
	if object.Kind() != "Deployment" {
		return made, nil
	}
	made["spec"].(map[string]any)["replicas"] = "<%replicas%>"
	for _, container := range containersOf(made) {
		switch container["name"] {
		case "kwok-controller":
			container["image"] = "<%kwokImage%>"
		case "kwok-dra":
			container["image"], container["imagePullPolicy"] = "<%image%>", "<%pullPolicy%>"
			container["env"], container["resources"] = "<%env%>", "<%resources%>"
			container["args"] = append(container["args"].([]any), "<%extraArgs%>")
		}
	}
	return made, nil
}

// containersOf are those of a Deployment.
func containersOf(deployment map[string]any) []map[string]any {
	spec := deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	var all []map[string]any
	for _, container := range spec["containers"].([]any) {
		all = append(all, container.(map[string]any))
	}
	return all
}

// replaceStrings copies a value, with holes for the namespace. Text that Helm would
// take for a template has no place here.
func replaceStrings(value any) (any, error) {
	switch value := value.(type) {
	case string:
		if strings.Contains(value, "{{") || strings.Contains(value, "<%") {
			return nil, fmt.Errorf("%q is a template itself", value)
		}
		return strings.ReplaceAll(value, namespace, "<%namespace%>"), nil
	case map[string]any:
		copied := map[string]any{}
		for key, element := range value {
			replaced, err := replaceStrings(element)
			if err != nil {
				return nil, err
			}
			copied[key] = replaced
		}
		return copied, nil
	case []any:
		copied := []any{}
		for _, element := range value {
			replaced, err := replaceStrings(element)
			if err != nil {
				return nil, err
			}
			copied = append(copied, replaced)
		}
		return copied, nil
	}
	return value, nil
}

// defaultValues are what the chart's values say where the overlays do, as pairs of holes
// and what fills them.
func defaultValues(objects []overlay.Object) ([]string, error) {
	for _, object := range objects {
		if object.Kind() != "Deployment" {
			continue
		}
		var pairs []string
		for _, container := range containersOf(object) {
			repository, tag, _ := strings.Cut(fmt.Sprint(container["image"]), ":")
			prefix := map[any]string{"kwok-controller": "kwok", "kwok-dra": "own"}[container["name"]]
			pairs = append(pairs, "<%"+prefix+"Repository%>", repository, "<%"+prefix+"Tag%>", tag)
			for name, field := range map[string]string{"Env": "env", "Resources": "resources"} {
				text, err := yaml.Marshal(map[string]any{field: container[field]})
				if err != nil {
					return nil, err
				}
				pairs = append(pairs, "<%"+prefix+name+"%>\n", string(text))
			}
		}
		return pairs, nil
	}
	return nil, errors.New("the overlay has no Deployment")
}
