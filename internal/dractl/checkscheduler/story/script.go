package story

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// scriptStart begins each script. answer sets the conditions for which the devices of all claims wait. By default a
// rest is 8 s: longer than kube-scheduler needs to see the answers of drivers.
const scriptStart = `#!/bin/sh
# Story %[1]s, drawn from seed %[2]d. It needs kubectl alone, and a cluster with a scheduler and
# kube-controller-manager. It leaves its objects behind; to delete them: sh FILE clean
set -eu
rest() { sleep "${REST:-8}"; }
answer() {
  sleep 2
  kubectl -n %[1]s get resourceclaims -o go-template='{{range .items}}{{if and .status.allocation (not .status.devices)}}{{.metadata.name}} {"status":{"devices":[{{$comma := ""}}{{range .status.allocation.devices.results}}{{if .bindingConditions}}{{$comma}}{"driver":"{{.driver}}","pool":"{{.pool}}","device":"{{.device}}"{{with .shareID}},"shareID":"{{.}}"{{end}},"conditions":[{{$and := ""}}{{range .'"$1"'}}{{$and}}{"type":"{{.}}","status":"True","reason":"Answered","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}{{$and = ","}}{{end}}]}{{$comma = ","}}{{end}}{{end}}]}}
{{end}}{{end}}' | while read -r claim patch; do
    if [ "$patch" != '{"status":{"devices":[]}}' ]; then
      kubectl -n %[1]s patch resourceclaim "$claim" --subresource=status --type=merge -p "$patch"
    fi
  done
}
if [ "${1:-}" = clean ]; then
  kubectl delete pods,resourceclaims,resourceclaimtemplates -n %[1]s --all --grace-period=0 --force
  kubectl delete %[3]s -l %[4]s=%[1]s
  exit
fi
`

// WriteScript writes a shell script that tells the story with kubectl alone.
func (s *Story) WriteScript(w io.Writer) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, scriptStart, s.ID, s.Seed, strings.Join(s.clusterResources(), ","), Label)
	deleted := map[Ref]bool{}
	for i := range s.Steps {
		step := &s.Steps[i]
		fmt.Fprintf(&text, "\n# %d. %s\n", i+1, step.Say)
		if err := s.writeCreations(&text, step.Create, deleted); err != nil {
			return err
		}
		if err := writeObjects(&text, "replace", step.Replace); err != nil {
			return err
		}
		for _, patch := range step.Patch {
			subresource := ""
			if patch.Subresource != "" {
				subresource = " --subresource=" + patch.Subresource
			}
			fmt.Fprintf(&text, "kubectl patch %s%s --type=merge -p '%s'\n", s.argumentsFor(patch.Ref), subresource, patch.Merge)
		}
		for _, deletion := range step.Delete {
			deleted[deletion.Ref] = true
			fmt.Fprintf(&text, "kubectl delete %s --ignore-not-found --wait=false%s\n", s.argumentsFor(deletion.Ref), deletion.graceFlags())
		}
		for _, node := range step.Drain {
			fmt.Fprintf(&text, "kubectl cordon %s\nkubectl delete pods -n %s --field-selector spec.nodeName=%s --grace-period=0 --force --wait=false\n", node, s.ID, node)
		}
		s.writeWaits(&text, step)
	}
	_, err := w.Write(text.Bytes())
	return err
}

// writeCreations writes the creation of objects, after those of the same names that were deleted are gone.
func (s *Story) writeCreations(text *bytes.Buffer, objects Objects, deleted map[Ref]bool) error {
	for _, object := range objects {
		if ref := refTo(object); deleted[ref] {
			fmt.Fprintf(text, "kubectl wait --for=delete %s --timeout=60s\n", s.argumentsFor(ref))
		}
	}
	if err := writeObjects(text, "create", objects); err != nil {
		return err
	}
	for _, object := range objects {
		if ref := refTo(object); ref.Kind == "ResourceQuota" {
			fmt.Fprintf(text, "kubectl wait --for=jsonpath='{.status.hard}' %s\n", s.argumentsFor(ref))
		}
	}
	return nil
}

// writeWaits writes what a step waits for.
func (s *Story) writeWaits(text *bytes.Buffer, step *Step) {
	switch step.Answer {
	case Ready:
		text.WriteString("answer bindingConditions\n")
	case Failed:
		text.WriteString("answer bindingFailureConditions\n")
	}
	if step.Rest {
		fmt.Fprintf(text, "rest\nkubectl get pods,resourceclaims -n %s -o wide\n", s.ID)
	}
}

// clusterResources returns what kubectl calls the kinds of the story's objects outside the namespace, which goes last.
func (s *Story) clusterResources() []string {
	var resources []string
	for _, kind := range append(clearedKinds, "Namespace") {
		if kinds[kind].isNamespaced {
			continue
		}
		for i := range s.Steps {
			if hasKind(s.Steps[i].Create, kind) {
				resources = append(resources, kinds[kind].resource)
				break
			}
		}
	}
	return resources
}

func hasKind(objects Objects, kind string) bool {
	for _, object := range objects {
		if refTo(object).Kind == kind {
			return true
		}
	}
	return false
}

// argumentsFor names an object to kubectl.
func (s *Story) argumentsFor(ref Ref) string {
	arguments := strings.ToLower(ref.Kind) + " " + ref.Name
	if kinds[ref.Kind].isNamespaced {
		arguments = "-n " + s.ID + " " + arguments
	}
	return arguments
}

func (d Deletion) graceFlags() string {
	switch {
	case d.Kind != "Pod":
		return ""
	case d.IsGraceful:
		return fmt.Sprintf(" --grace-period=%d", graceSeconds)
	}
	return " --grace-period=0 --force"
}

func writeObjects(text *bytes.Buffer, verb string, objects Objects) error {
	if len(objects) == 0 {
		return nil
	}
	fmt.Fprintf(text, "kubectl %s -f - <<'EOF'\n", verb)
	for i, object := range objects {
		if i > 0 {
			text.WriteString("---\n")
		}
		content, err := contentOf(object)
		if err != nil {
			return err
		}
		data, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("write %s: %w", object.GetName(), err)
		}
		text.Write(data)
	}
	text.WriteString("EOF\n")
	return nil
}
