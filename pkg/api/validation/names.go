package validation

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// form is a form of names: the largest number of characters, a text for errors, a function that
// returns what is wrong with a name, and one that guesses a name of the form.
type form struct {
	max    int
	must   string
	check  func(name string) []string
	repair func(name string) string
}

var (
	labelForm = form{
		content.DNS1123LabelMaxLength, `must be a DNS label: lower-case letters, digits and inner "-"`,
		content.IsDNS1123Label, suggest.Label,
	}
	subdomainForm = form{
		content.DNS1123SubdomainMaxLength, `must be a DNS subdomain: lower-case letters, digits and inner "-" and "."`,
		content.IsDNS1123Subdomain, suggest.Subdomain,
	}
	// driverForm is the form of CSI driver names, which the API server requires.
	driverForm = form{
		resourcev1.DriverNameMaxLength, `must be a DNS subdomain: letters, digits and inner "-" and "."`,
		func(name string) []string { return content.IsDNS1123Subdomain(strings.ToLower(name)) }, suggest.Subdomain,
	}
	poolNameForm = form{
		resourcev1.PoolNameMaxLength, `must be DNS subdomains with "/" between them: lower-case letters, digits and inner "-" and "."`,
		func(name string) (problems []string) {
			for part := range strings.SplitSeq(name, "/") {
				problems = append(problems, content.IsDNS1123Subdomain(part)...)
			}
			return problems
		}, suggest.PoolName,
	}
	identifierForm = form{
		resourcev1.DeviceMaxIDLength, `must be a C identifier: letters, digits and "_", no digit first`,
		content.IsCIdentifier, suggest.Identifier,
	}
	labelKeyForm = form{
		content.DNS1123SubdomainMaxLength + 1 + content.LabelValueMaxLength,
		`must be a name of at most 63 letters, digits and inner "-", "_" and ".", with or without a DNS subdomain and "/" before it`,
		content.IsLabelKey, suggest.LabelKey,
	}
	labelValueForm = form{
		content.LabelValueMaxLength, `must be letters, digits and inner "-", "_" and "."`,
		content.IsLabelValue, suggest.LabelValue,
	}
)

func (f form) isFitting(name string) bool { return len(name) <= f.max && len(f.check(name)) == 0 }

// checkName reports a name without the form, and proposes one that has it.
func (f form) checkName(name string, at fieldcheck.Checker) {
	if len(name) > f.max {
		at.LimitLength(name, f.max, "")
	} else if !f.isFitting(name) {
		at.AddInvalid(name, "%s%s", f.must, proposeValue(f.repair(name), f.isFitting))
	}
}

// checkRequiredName checks a name that must not be empty.
func (f form) checkRequiredName(name, missing string, at fieldcheck.Checker) {
	if at.RequirePresence(name != "", "%s", missing) {
		f.checkName(name, at)
	}
}

func (f form) checkAtPath(name string, path *field.Path) field.ErrorList {
	at := fieldcheck.New(path)
	f.checkName(name, at)
	return at.Errors()
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

// validateQualifiedName requires a C identifier, or a domain, a slash and a C identifier. The API
// server accepts names with more slashes, although its own source says that it should not; here
// they are refused.
func validateQualifiedName(name string, at fieldcheck.Checker) {
	domain, id, qualified := strings.Cut(name, "/")
	repaired := suggest.Subdomain(domain) + "/" + suggest.Identifier(id)
	switch {
	case !qualified:
		identifierForm.checkName(name, at)
	case len(domain) > driverForm.max:
		at.AddInvalid(name, `must have at most %d characters before the "/", has %d`, driverForm.max, len(domain))
	case len(id) > identifierForm.max:
		at.AddInvalid(name, `must have at most %d characters after the "/", has %d`, identifierForm.max, len(id))
	case !driverForm.isFitting(domain):
		at.AddInvalid(name, `must have a DNS subdomain before the "/": letters, digits and inner "-" and "."%s`, proposeValue(repaired, isQualified))
	case !identifierForm.isFitting(id):
		at.AddInvalid(name, `must have a C identifier after the "/": letters, digits and "_", no digit first%s`, proposeValue(repaired, isQualified))
	}
}

func isQualified(name string) bool {
	domain, id, qualified := strings.Cut(name, "/")
	return qualified && driverForm.isFitting(domain) && identifierForm.isFitting(id)
}
