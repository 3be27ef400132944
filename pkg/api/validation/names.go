package validation

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// form is a form that names must have.
type form struct {
	// max is the most characters.
	max int
	// must says what the form is.
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
		holds:  holds(content.IsDNS1123Label),
		repair: suggest.Label,
	}
	subdomainForm = form{
		max:    content.DNS1123SubdomainMaxLength,
		must:   `must be a DNS subdomain: lower-case letters, digits and inner "-" and "."`,
		holds:  holds(content.IsDNS1123Subdomain),
		repair: suggest.Subdomain,
	}
	// driverForm is that of CSI driver names, as for the API server.
	driverForm = form{
		max:    resourcev1.DriverNameMaxLength,
		must:   `must be a DNS subdomain: letters, digits and inner "-" and "."`,
		holds:  func(name string) bool { return subdomainForm.holds(strings.ToLower(name)) },
		repair: suggest.Subdomain,
	}
	poolNameForm = form{
		max:    resourcev1.PoolNameMaxLength,
		must:   `must be DNS subdomains with "/" between them: lower-case letters, digits and inner "-" and "."`,
		holds:  isPoolName,
		repair: repairPoolName,
	}
	identifierForm = form{
		max:    resourcev1.DeviceMaxIDLength,
		must:   `must be a C identifier: letters, digits and "_", no digit first`,
		holds:  holds(content.IsCIdentifier),
		repair: suggest.Identifier,
	}
	labelKeyForm = form{
		max:    content.DNS1123SubdomainMaxLength + 1 + content.LabelValueMaxLength,
		must:   `must be a name of at most 63 letters, digits and inner "-", "_" and ".", with or without a DNS subdomain and "/" before it`,
		holds:  holds(content.IsLabelKey),
		repair: repairLabelKey,
	}
	labelValueForm = form{
		max:    content.LabelValueMaxLength,
		must:   `must be letters, digits and inner "-", "_" and "."`,
		holds:  holds(content.IsLabelValue),
		repair: func(value string) string { return suggest.Name(value, "-", "_.") },
	}
)

func holds(check func(string) []string) func(string) bool {
	return func(name string) bool { return len(check(name)) == 0 }
}

// check says what is wrong with a name, and what would be right.
func (f form) check(name string, at checker) {
	switch {
	case len(name) > f.max:
		at.tooLong(name, f.max)
	case !f.holds(name):
		at.invalid(name, "%s%s", f.must, use(f.repair(name), f.fits))
	}
}

// require checks a name that must be there.
func (f form) require(name, missing string, at checker) {
	if at.needs(name != "", "%s", missing) {
		f.check(name, at)
	}
}

func (f form) validate(name string, path *field.Path) field.ErrorList {
	at := newChecker(path)
	f.check(name, at)
	return *at.errs
}

func (f form) fits(name string) bool {
	return len(name) <= f.max && f.holds(name)
}

// use proposes a value, if there is one and it is valid.
func use(value string, valid func(string) bool) string {
	if value == "" || !valid(value) {
		return ""
	}
	return fmt.Sprintf("; use %q", value)
}

func isPoolName(name string) bool {
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !subdomainForm.holds(part) })
}

func repairPoolName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part = suggest.Subdomain(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

func repairLabelKey(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return suggest.Name(key, "-", "_.")
	}
	return strings.TrimPrefix(suggest.Subdomain(prefix)+"/"+suggest.Name(name, "-", "_."), "/")
}

// ValidateLabel applies the API server's rule for the names of devices, counter
// sets and counters: DNS labels.
func ValidateLabel(name string, path *field.Path) field.ErrorList {
	return labelForm.validate(name, path)
}

// ValidateSubdomain applies the API server's rule for the names of nodes: DNS
// subdomains.
func ValidateSubdomain(name string, path *field.Path) field.ErrorList {
	return subdomainForm.validate(name, path)
}

// ValidatePoolName applies the API server's rule for pool names: DNS subdomains
// separated by slashes, at most 253 characters.
func ValidatePoolName(name string, path *field.Path) field.ErrorList {
	return poolNameForm.validate(name, path)
}

// IsLabelValue reports whether a text can be the value of a label.
func IsLabelValue(text string) bool {
	return labelValueForm.fits(text)
}

// validateQualifiedName wants a C identifier, or a domain, a slash and a C
// identifier. The API server lets names with more slashes pass; here they are
// refused, as its own source says it should.
func validateQualifiedName(name string, at checker) {
	domain, id, qualified := strings.Cut(name, "/")
	if !qualified {
		identifierForm.check(name, at)
		return
	}
	repaired := suggest.Subdomain(domain) + "/" + suggest.Identifier(id)
	switch {
	case len(domain) > driverForm.max:
		at.invalid(name, `must have at most %d characters before the "/", has %d`, driverForm.max, len(domain))
	case len(id) > identifierForm.max:
		at.invalid(name, `must have at most %d characters after the "/", has %d`, identifierForm.max, len(id))
	case !driverForm.holds(domain):
		at.invalid(name, `must have a DNS subdomain before the "/": letters, digits and inner "-" and "."%s`, use(repaired, isQualified))
	case !identifierForm.holds(id):
		at.invalid(name, `must have a C identifier after the "/": letters, digits and "_", no digit first%s`, use(repaired, isQualified))
	}
}

func isQualified(name string) bool {
	domain, id, qualified := strings.Cut(name, "/")
	return qualified && driverForm.fits(domain) && identifierForm.fits(id)
}

// validateFullyQualified is stricter than validateQualifiedName about the domain,
// as the API server is.
func validateFullyQualified(name, driver string, at checker) {
	domain, _, qualified := strings.Cut(name, "/")
	switch {
	case !qualified:
		at.invalid(name, `must have a domain and "/" before the name%s`, use(driver+"/"+name, isQualified))
	case domain != strings.ToLower(domain):
		at.invalid(name, `must have a domain in lower case before the "/", also where the driver's name has capitals`)
	default:
		validateQualifiedName(name, at)
	}
}
