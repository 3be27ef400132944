package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/pkg/suggest"
)

// checker notes what is wrong with the value at a path.
type checker struct {
	path *field.Path
	errs *field.ErrorList
}

func newChecker(path *field.Path) checker {
	return checker{path, new(field.ErrorList)}
}

func (c checker) child(name string, more ...string) checker {
	return checker{c.path.Child(name, more...), c.errs}
}

func (c checker) index(i int) checker {
	return checker{c.path.Index(i), c.errs}
}

func (c checker) key(key string) checker {
	return checker{c.path.Key(key), c.errs}
}

// found counts what is wrong so far, here and elsewhere.
func (c checker) found() int {
	return len(*c.errs)
}

func (c checker) add(errs ...*field.Error) {
	*c.errs = append(*c.errs, errs...)
}

func (c checker) invalid(value any, format string, args ...any) {
	c.add(field.Invalid(c.path, value, fmt.Sprintf(format, args...)))
}

// must notes a value that breaks a rule.
func (c checker) must(holds bool, value any, format string, args ...any) bool {
	if !holds {
		c.invalid(value, format, args...)
	}
	return holds
}

func (c checker) required(format string, args ...any) {
	c.add(field.Required(c.path, fmt.Sprintf(format, args...)))
}

// needs notes that something is missing.
func (c checker) needs(has bool, format string, args ...any) bool {
	if !has {
		c.required(format, args...)
	}
	return has
}

func (c checker) forbidden(detail string) {
	c.add(field.Forbidden(c.path, detail))
}

func (c checker) duplicate(value any) {
	c.add(field.Duplicate(c.path, value))
}

func (c checker) tooMany(n, limit int) {
	if n > limit {
		c.add(field.TooMany(c.path, n, limit))
	}
}

func (c checker) tooLong(value string, limit int) {
	c.must(len(value) <= limit, value, "must be at most %d characters, is %d", limit, len(value))
}

func (c checker) notNegative(quantity *resource.Quantity) {
	c.must(quantity == nil || quantity.Sign() >= 0, quantity.String(), "must not be less than 0")
}

func (c checker) moreThanZero(quantity *resource.Quantity) bool {
	return c.must(quantity == nil || quantity.Sign() > 0, quantity.String(), "must be more than 0")
}

func (c checker) atMost(value, limit *resource.Quantity, what string) {
	c.must(value == nil || limit == nil || value.Cmp(*limit) <= 0, value.String(), "must be at most %s, %s", what, limit)
}

// nonEmpty checks a list of texts.
func (c checker) nonEmpty(items []string, missing string) {
	for i, item := range items {
		c.index(i).needs(item != "", "%s", missing)
	}
}

// oneOf checks a value of which only a few are supported.
func oneOf[T ~string](at checker, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		err := field.NotSupported(at.path, value, supported)
		err.Detail += suggest.DidYouMean(value, supported)
		at.add(err)
	}
}

// each checks every item of a list, of which there are no two alike.
func each[T comparable](at checker, items []T, check func(item T, at checker)) {
	for i, item := range items {
		check(item, at.index(i))
		if slices.Contains(items[:i], item) {
			at.index(i).duplicate(item)
		}
	}
}

// eachOf checks every value of a map, in the order of the keys.
func eachOf[K ~string, V any](at checker, values map[K]V, check func(key K, value V, at checker)) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		check(key, values[key], at.key(string(key)))
	}
}

// of lists the names of a map for a message.
func of[K ~string, V any](values map[K]V) string {
	if len(values) == 0 {
		return ", which has none"
	}
	names := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		names = append(names, string(name))
	}
	return "; it has " + strings.Join(names, ", ")
}
