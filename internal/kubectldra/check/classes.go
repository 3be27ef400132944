package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// askers returns who asks for each class: claims without devices, and templates of claims.
func (w *World) askers() map[string][]string {
	all := map[string][]string{}
	note := func(asker string, spec *resourcev1.ResourceClaimSpec) {
		for _, class := range classesOf(spec) {
			all[class] = append(all[class], asker)
		}
	}
	for _, claim := range w.Claims {
		if claim.Status.Allocation == nil {
			note("claim "+keyOf(claim), &claim.Spec)
		}
	}
	for _, template := range w.ClaimTemplates {
		note("template "+template.Namespace+"/"+template.Name, &template.Spec.Spec)
	}
	return all
}

func classesOf(spec *resourcev1.ResourceClaimSpec) []string {
	names := map[string]bool{}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			names[request.Exactly.DeviceClassName] = true
		}
		for j := range request.FirstAvailable {
			names[request.FirstAvailable[j].DeviceClassName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func findMissingClasses(_ context.Context, w *World) []Finding {
	var known []string
	for _, class := range w.Classes {
		known = append(known, class.Name)
	}
	var findings []Finding
	for class, askers := range w.askers() {
		if slices.Contains(known, class) {
			continue
		}
		evidence := fmt.Sprintf("%s asks for it", firstFew(askers))
		if nearest := suggest.Nearest(class, known); nearest != "" {
			evidence += "; there is a class " + nearest
		}
		findings = append(findings, Finding{Object: class, Evidence: evidence, Fix: "kubectl get deviceclasses # install the class with its driver, or name one of these"})
	}
	return findings
}

// findEmptyClasses finds classes that select no device. That is a problem if a claim waits for one.
func findEmptyClasses(ctx context.Context, w *World) []Finding {
	askers := w.askers()
	var findings []Finding
	for _, class := range simulator.FindEmptyClasses(ctx, w.Classes, w.Slices) {
		var left []string
		for _, selector := range class.Left {
			left = append(left, fmt.Sprintf("%s leaves %s", strings.Join(strings.Fields(selector.Expression), " "), listing.Count(selector.Devices, "device")))
		}
		finding := Finding{Level: Hint, Object: class.Name, Evidence: strings.Join(left, ", then "), Fix: "kubectl edit deviceclass " + class.Name}
		if class.Failure != "" {
			finding.Evidence += "; for some devices it fails: " + class.Failure
		}
		if len(w.Slices) == 0 {
			finding.Evidence, finding.Fix = "no driver has published any ResourceSlice", "kubectl get pods -A # does the driver run?"
		}
		if of := askers[class.Name]; len(of) > 0 {
			finding.Level, finding.Evidence = Problem, finding.Evidence+"; "+firstFew(of)+" asks for it"
		}
		findings = append(findings, finding)
	}
	return findings
}
