package adapters

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// templateName names the template of a part of an object. No two parts of two
// objects have the same: the object ends at the first ".", or there is a hash at
// the end.
func templateName(object, part string) string {
	full := object + "." + part
	name := suggest.Subdomain(full)
	if name == full && !strings.Contains(object, ".") && len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(full))
	hash := "-" + hex.EncodeToString(sum[:])[:10]
	return strings.TrimRight(name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(hash))], "-.") + hash
}

// literal is a text as a value that may be a Go template: it stands for itself.
func literal(text string) string {
	return strings.ReplaceAll(text, "{{", `{{"{{"}}`)
}

// driverName is the name of a driver as the API server accepts it. It has no "/",
// which names of extended resources have.
func (a *adapter) driverName(given, path string) string {
	name := strings.ReplaceAll(given, "/", ".")
	if name != given {
		a.change(`%s %q is published as %q, since the name of a driver has no "/"`, path, given, name)
	}
	return name
}

// attributeNames maps the names of attributes to those that the API server
// accepts: a C identifier has no "-". Two that become one are refused.
func (a *adapter) attributeNames(given []string, path *field.Path) map[string]string {
	published, taken := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(slices.Values(given)) {
		last := strings.LastIndex(name, "/") + 1
		normal := name[:last] + strings.ReplaceAll(name[last:], "-", "_")
		if other, ok := taken[normal]; ok {
			delete(a.renamed, path.Key(normal).String())
			a.refuse(field.Invalid(path.Key(name), name, fmt.Sprintf("would be published as %q, as %q is: rename one", normal, other)))
			continue
		}
		if normal != name {
			if a.renamed == nil {
				a.renamed = map[string]string{}
			}
			a.renamed[path.Key(normal).String()] = path.Key(name).String()
			a.change(`attribute %q is published as %q, since the name of an attribute has no "-"`, name, normal)
		}
		taken[normal], published[name] = name, normal
	}
	return published
}
