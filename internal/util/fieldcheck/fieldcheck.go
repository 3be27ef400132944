package fieldcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// Checker collects the errors of the value at a path, and of what is below it.
type Checker struct {
	// Path is nil for the whole document.
	Path *field.Path
	errs *field.ErrorList
}

// New makes a Checker without errors.
func New(path *field.Path) Checker { return Checker{path, new(field.ErrorList)} }

// Errors are those of all Checkers that were made of one.
func (c Checker) Errors() field.ErrorList { return *c.errs }

// AtField is the Checker of a field.
func (c Checker) AtField(name string, more ...string) Checker {
	return Checker{c.Path.Child(name, more...), c.errs}
}

// AtIndex is the Checker of an item of a list.
func (c Checker) AtIndex(i int) Checker { return Checker{c.Path.Index(i), c.errs} }

// AtKey is the Checker of a value of a map.
func (c Checker) AtKey(key string) Checker { return Checker{c.Path.Key(key), c.errs} }

// AddErrors adds errors that were found elsewhere.
func (c Checker) AddErrors(errs ...*field.Error) { *c.errs = append(*c.errs, errs...) }

// AddInvalid adds an error of the value.
func (c Checker) AddInvalid(value any, format string, args ...any) {
	c.AddErrors(field.Invalid(c.Path, value, fmt.Sprintf(format, args...)))
}

// RequireThat adds an error if the value breaks a rule, and reports whether it holds.
func (c Checker) RequireThat(holds bool, value any, format string, args ...any) bool {
	if !holds {
		c.AddInvalid(value, format, args...)
	}
	return holds
}

// RequirePresence adds an error if something is missing, and reports whether it is there.
func (c Checker) RequirePresence(has bool, format string, args ...any) bool {
	if !has {
		c.AddErrors(field.Required(c.Path, fmt.Sprintf(format, args...)))
	}
	return has
}

// Forbid adds an error if something is there that must not be.
func (c Checker) Forbid(has bool, format string, args ...any) {
	if has {
		c.AddErrors(field.Forbidden(c.Path, fmt.Sprintf(format, args...)))
	}
}

// LimitItems limits the number of items.
func (c Checker) LimitItems(n, limit int) {
	if n > limit {
		c.AddErrors(field.TooMany(c.Path, n, limit))
	}
}

// LimitLength limits a text. The fix ends the error, unless it is obvious.
func (c Checker) LimitLength(value string, limit int, fix string) {
	c.RequireThat(len(value) <= limit, value, "must be at most %d characters, is %d%s", limit, len(value), fix)
}

// RequireNotNegative requires that a quantity, if there is one, is not below 0.
func (c Checker) RequireNotNegative(quantity *resource.Quantity) {
	c.RequireThat(quantity == nil || quantity.Sign() >= 0, quantity.String(), "must not be less than 0")
}

// RequirePositive requires that a quantity, if there is one, is above 0, and reports whether it is.
func (c Checker) RequirePositive(quantity *resource.Quantity) bool {
	return c.RequireThat(quantity == nil || quantity.Sign() > 0, quantity.String(), "must be more than 0")
}

// LimitQuantity limits a quantity. What says where the limit comes from.
func (c Checker) LimitQuantity(value, limit *resource.Quantity, what string) {
	c.RequireThat(value == nil || limit == nil || value.Cmp(*limit) <= 0, value.String(), "must be at most %s, %s", what, limit)
}

// CheckNoneEmpty requires that no text of a list is empty.
func (c Checker) CheckNoneEmpty(items []string, missing string) {
	for i, item := range items {
		c.AtIndex(i).RequirePresence(item != "", "%s", missing)
	}
}

// OneOf checks that a value is one of the supported ones.
func OneOf[T ~string](at Checker, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		err := field.NotSupported(at.Path, value, supported)
		err.Detail += suggest.DidYouMean(value, supported)
		at.AddErrors(err)
	}
}

// CheckItems checks every item of a list, and refuses duplicates.
func CheckItems[T comparable](at Checker, items []T, check func(item T, at Checker)) {
	for i, item := range items {
		at := at.AtIndex(i)
		check(item, at)
		if slices.Contains(items[:i], item) {
			at.AddErrors(field.Duplicate(at.Path, item))
		}
	}
}

// CheckValues checks every value of a map, in the order of its keys.
func CheckValues[K ~string, V any](at Checker, values map[K]V, check func(key K, value V, at Checker)) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		check(key, values[key], at.AtKey(string(key)))
	}
}

// ListNames lists the keys of a map for a message.
func ListNames[K ~string, V any](values map[K]V) string {
	if len(values) == 0 {
		return ", which has none"
	}
	return "; it has " + JoinTexts(slices.Sorted(maps.Keys(values)))
}

// JoinTexts lists texts for a message.
func JoinTexts[T ~string](texts []T) string {
	joined := make([]string, len(texts))
	for i, text := range texts {
		joined[i] = string(text)
	}
	return strings.Join(joined, ", ")
}
