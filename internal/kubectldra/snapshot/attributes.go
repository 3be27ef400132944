package snapshot

import (
	"regexp"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// interest is what the requests of a cluster look at in devices. The attributes of 40,000 devices take 100 MiB, of which
// most answers need little.
type interest struct {
	// keys are the names of attributes without their domains, since an answer also names the domain in which
	// a device has an attribute.
	keys map[string]bool
	// all says that an expression may read any attribute.
	all      bool
	capacity bool
}

// addWorld adds what classes, claims without devices and templates look at.
func (in *interest) addWorld(world *simulator.World) {
	for _, class := range world.Classes {
		in.addSelectors(class.Spec.Selectors)
	}
	for _, claim := range world.Claims {
		if claim.Status.Allocation == nil {
			in.addClaim(&claim.Spec)
		}
	}
	for _, template := range world.ClaimTemplates {
		in.addClaim(&template.Spec.Spec)
	}
}

func (in *interest) addClaim(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Constraints {
		constraint := &spec.Devices.Constraints[i]
		for _, name := range []*resourcev1.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if name != nil {
				in.keys[keyOf(string(*name))] = true
			}
		}
	}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			in.addSelectors(exactly.Selectors)
			in.all = in.all || len(exactly.DerivedAttributes) > 0
			in.capacity = in.capacity || exactly.Capacity != nil
		}
		for j := range request.FirstAvailable {
			in.addSelectors(request.FirstAvailable[j].Selectors)
			in.all = in.all || len(request.FirstAvailable[j].DerivedAttributes) > 0
			in.capacity = in.capacity || request.FirstAvailable[j].Capacity != nil
		}
	}
}

// readsAttribute matches what reads one attribute, by its name.
var readsAttribute = regexp.MustCompile(`\battributes\s*\[\s*(?:"[^"\\]*"|'[^'\\]*')\s*\]\s*\.\s*\??\s*(\w+)\s*([^\s\w]|$)`)

func (in *interest) addSelectors(selectors []resourcev1.DeviceSelector) {
	for i := range selectors {
		if selectors[i].CEL == nil {
			continue
		}
		expression := selectors[i].CEL.Expression
		in.capacity = in.capacity || strings.Contains(expression, "capacity")
		found := readsAttribute.FindAllStringSubmatch(expression, -1)
		in.all = in.all || len(found) != strings.Count(expression, "attributes")
		for _, read := range found {
			in.all = in.all || read[2] == "(" // a macro, such as exists, reads them all
			in.keys[read[1]] = true
		}
	}
}

func (in *interest) keepsAttribute(name resourcev1.QualifiedName) bool {
	return in.all || in.keys[keyOf(string(name))]
}

// keyOf returns the name of an attribute without its domain.
func keyOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
