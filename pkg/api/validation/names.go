package validation

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// form is a form of names.
type form struct {
	// max is the largest number of characters.
	max int
	// must describes the form.
	must string
	// holds reports whether a name has the form.
	holds func(name string) bool
	// repair guesses a name that has the form.
	repair func(name string) string
}

var (
	labelForm = form{
		max:    content.DNS1123LabelMaxLength,
		must:   `must be a DNS label: lower-case letters, digits and inner "-"`,
		holds:  isAccepted(content.IsDNS1123Label),
		repair: suggest.Label,
	}
	subdomainForm = form{
		max:    content.DNS1123SubdomainMaxLength,
		must:   `must be a DNS subdomain: lower-case letters, digits and inner "-" and "."`,
		holds:  isAccepted(content.IsDNS1123Subdomain),
		repair: suggest.Subdomain,
	}
	// driverForm is the form of CSI driver names, which the API server requires.
	driverForm = form{
		max:    resourcev1.DriverNameMaxLength,
		must:   `must be a DNS subdomain: letters, digits and inner "-" and "."`,
		holds:  func(name string) bool { return subdomainForm.holds(strings.ToLower(name)) },
		repair: suggest.Subdomain,
	}
	poolNameForm = form{
		max:  resourcev1.PoolNameMaxLength,
		must: `must be DNS subdomains with "/" between them: lower-case letters, digits and inner "-" and "."`,
		holds: func(name string) bool {
			return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !subdomainForm.holds(part) })
		},
		repair: suggest.PoolName,
	}
	identifierForm = form{
		max:    resourcev1.DeviceMaxIDLength,
		must:   `must be a C identifier: letters, digits and "_", no digit first`,
		holds:  isAccepted(content.IsCIdentifier),
		repair: suggest.Identifier,
	}
	labelKeyForm = form{
		max:    content.DNS1123SubdomainMaxLength + 1 + content.LabelValueMaxLength,
		must:   `must be a name of at most 63 letters, digits and inner "-", "_" and ".", with or without a DNS subdomain and "/" before it`,
		holds:  isAccepted(content.IsLabelKey),
		repair: suggest.LabelKey,
	}
	labelValueForm = form{
		max:    content.LabelValueMaxLength,
		must:   `must be letters, digits and inner "-", "_" and "."`,
		holds:  isAccepted(content.IsLabelValue),
		repair: suggest.LabelValue,
	}
)

func isAccepted(check func(string) []string) func(string) bool {
	return func(name string) bool { return len(check(name)) == 0 }
}

// checkName reports a name without the form, and proposes one that has it.
func (f form) checkName(name string, at checker) {
	switch {
	case len(name) > f.max:
		at.limitLength(name, f.max, "")
	case !f.holds(name):
		at.addInvalid(name, "%s%s", f.must, proposeValue(f.repair(name), f.isFitting))
	}
}

// checkRequiredName checks a name that must not be empty.
func (f form) checkRequiredName(name, missing string, at checker) {
	if at.requirePresence(name != "", "%s", missing) {
		f.checkName(name, at)
	}
}

func (f form) checkAtPath(name string, path *field.Path) field.ErrorList {
	at := newChecker(path)
	f.checkName(name, at)
	return *at.errs
}

func (f form) isFitting(name string) bool {
	return len(name) <= f.max && f.holds(name)
}

// proposeValue ends a message with a value, if there is a valid one.
func proposeValue(value string, valid func(string) bool) string {
	if value == "" || !valid(value) {
		return ""
	}
	return fmt.Sprintf("; use %q", value)
}

// ValidateDriver applies the API server's rule for names of drivers: DNS subdomains of at most 63
// characters.
func ValidateDriver(name string, path *field.Path) field.ErrorList {
	return driverForm.checkAtPath(name, path)
}

// ValidateLabel applies the API server's rule for names of devices, counter sets and counters: DNS
// labels.
func ValidateLabel(name string, path *field.Path) field.ErrorList {
	return labelForm.checkAtPath(name, path)
}

// ValidateSubdomain applies the API server's rule for names of nodes: DNS subdomains.
func ValidateSubdomain(name string, path *field.Path) field.ErrorList {
	return subdomainForm.checkAtPath(name, path)
}

// ValidatePoolName applies the API server's rule for pool names: DNS subdomains
// separated by slashes, at most 253 characters.
func ValidatePoolName(name string, path *field.Path) field.ErrorList {
	return poolNameForm.checkAtPath(name, path)
}

// IsLabelValue reports whether a label may have a text as its value.
func IsLabelValue(text string) bool {
	return labelValueForm.isFitting(text)
}

// validateQualifiedName requires a C identifier, or a domain, a slash and a C identifier. The API
// server accepts names with more slashes, although its own source says that it should not; here
// they are refused.
func validateQualifiedName(name string, at checker) {
	domain, id, qualified := strings.Cut(name, "/")
	if !qualified {
		identifierForm.checkName(name, at)
		return
	}
	repaired := suggest.Subdomain(domain) + "/" + suggest.Identifier(id)
	switch {
	case len(domain) > driverForm.max:
		at.addInvalid(name, `must have at most %d characters before the "/", has %d`, driverForm.max, len(domain))
	case len(id) > identifierForm.max:
		at.addInvalid(name, `must have at most %d characters after the "/", has %d`, identifierForm.max, len(id))
	case !driverForm.holds(domain):
		at.addInvalid(name, `must have a DNS subdomain before the "/": letters, digits and inner "-" and "."%s`, proposeValue(repaired, isQualified))
	case !identifierForm.holds(id):
		at.addInvalid(name, `must have a C identifier after the "/": letters, digits and "_", no digit first%s`, proposeValue(repaired, isQualified))
	}
}

func isQualified(name string) bool {
	domain, id, qualified := strings.Cut(name, "/")
	return qualified && driverForm.isFitting(domain) && identifierForm.isFitting(id)
}

// validateFullyQualified is stricter about the domain than validateQualifiedName, like the API
// server. It reports whether the name is valid.
func validateFullyQualified(name, driver string, at checker) bool {
	before := len(*at.errs)
	domain, _, qualified := strings.Cut(name, "/")
	switch {
	case !qualified:
		at.addInvalid(name, `must have a domain and "/" before the name%s`, proposeValue(driver+"/"+name, isQualified))
	case domain != strings.ToLower(domain):
		at.addInvalid(name, `must have a domain in lower case before the "/", also where the driver's name has capitals`)
	default:
		validateQualifiedName(name, at)
	}
	return len(*at.errs) == before
}
