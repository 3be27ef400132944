package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// checker collects the errors of the value at a path.
type checker struct {
	path *field.Path
	errs *field.ErrorList
}

func newChecker(path *field.Path) checker { return checker{path, new(field.ErrorList)} }

func (c checker) atField(name string, more ...string) checker {
	return checker{c.path.Child(name, more...), c.errs}
}

func (c checker) atIndex(i int) checker    { return checker{c.path.Index(i), c.errs} }
func (c checker) atKey(key string) checker { return checker{c.path.Key(key), c.errs} }

func (c checker) addErrors(errs ...*field.Error) { *c.errs = append(*c.errs, errs...) }

func (c checker) addInvalid(value any, format string, args ...any) {
	c.addErrors(field.Invalid(c.path, value, fmt.Sprintf(format, args...)))
}

// requireThat adds an error if the value breaks a rule, and reports whether it holds.
func (c checker) requireThat(holds bool, value any, format string, args ...any) bool {
	if !holds {
		c.addInvalid(value, format, args...)
	}
	return holds
}

// requirePresence adds an error if something is missing, and reports whether it is there.
func (c checker) requirePresence(has bool, format string, args ...any) bool {
	if !has {
		c.addErrors(field.Required(c.path, fmt.Sprintf(format, args...)))
	}
	return has
}

// forbid adds an error if something is there that must not be.
func (c checker) forbid(has bool, format string, args ...any) {
	if has {
		c.addErrors(field.Forbidden(c.path, fmt.Sprintf(format, args...)))
	}
}

func (c checker) limitItems(n, limit int) {
	if n > limit {
		c.addErrors(field.TooMany(c.path, n, limit))
	}
}

// limitLength limits a text. The fix ends the error, unless it is obvious.
func (c checker) limitLength(value string, limit int, fix string) {
	c.requireThat(len(value) <= limit, value, "must be at most %d characters, is %d%s", limit, len(value), fix)
}

func (c checker) notNegative(quantity *resource.Quantity) {
	c.requireThat(quantity == nil || quantity.Sign() >= 0, quantity.String(), "must not be less than 0")
}

func (c checker) moreThanZero(quantity *resource.Quantity) bool {
	return c.requireThat(quantity == nil || quantity.Sign() > 0, quantity.String(), "must be more than 0")
}

func (c checker) atMost(value, limit *resource.Quantity, what string) {
	c.requireThat(value == nil || limit == nil || value.Cmp(*limit) <= 0, value.String(), "must be at most %s, %s", what, limit)
}

// checkNoneEmpty requires that no text of a list is empty.
func (c checker) checkNoneEmpty(items []string, missing string) {
	for i, item := range items {
		c.atIndex(i).requirePresence(item != "", "%s", missing)
	}
}

// oneOf checks that a value is one of the supported ones.
func oneOf[T ~string](at checker, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		err := field.NotSupported(at.path, value, supported)
		err.Detail += suggest.DidYouMean(value, supported)
		at.addErrors(err)
	}
}

// checkItems checks every item of a list, and refuses duplicates.
func checkItems[T comparable](at checker, items []T, check func(item T, at checker)) {
	for i, item := range items {
		at := at.atIndex(i)
		check(item, at)
		if slices.Contains(items[:i], item) {
			at.addErrors(field.Duplicate(at.path, item))
		}
	}
}

// checkValues checks every value of a map, in the order of its keys.
func checkValues[K ~string, V any](at checker, values map[K]V, check func(key K, value V, at checker)) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		check(key, values[key], at.atKey(string(key)))
	}
}

// listNames lists the keys of a map for a message.
func listNames[K ~string, V any](values map[K]V) string {
	if len(values) == 0 {
		return ", which has none"
	}
	return "; it has " + joinTexts(slices.Sorted(maps.Keys(values)))
}

func joinTexts[T ~string](texts []T) string {
	joined := make([]string, len(texts))
	for i, text := range texts {
		joined[i] = string(text)
	}
	return strings.Join(joined, ", ")
}
