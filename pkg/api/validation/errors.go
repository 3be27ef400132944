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

func invalid(path *field.Path, value any, detail string) field.ErrorList {
	return field.ErrorList{field.Invalid(path, value, detail)}
}

func required(path *field.Path, detail string) field.ErrorList {
	return field.ErrorList{field.Required(path, detail)}
}

func forbidden(path *field.Path, detail string) field.ErrorList {
	return field.ErrorList{field.Forbidden(path, detail)}
}

// oneOf checks a value of which only a few are supported.
func oneOf[T ~string](path *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	err := field.NotSupported(path, value, supported)
	err.Detail += suggest.DidYouMean(value, supported)
	return field.ErrorList{err}
}

// each checks every item of a list, of which there are no two alike.
func each[T comparable](path *field.Path, items []T, check func(item T, path *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i, item := range items {
		errs = append(errs, check(item, path.Index(i))...)
		if slices.Contains(items[:i], item) {
			errs = append(errs, field.Duplicate(path.Index(i), item))
		}
	}
	return errs
}

// eachOf checks every value of a map, in the order of the keys.
func eachOf[K ~string, V any](path *field.Path, values map[K]V, check func(key K, value V, path *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(values)) {
		errs = append(errs, check(key, values[key], path.Key(string(key)))...)
	}
	return errs
}

func tooMany(path *field.Path, n, limit int) field.ErrorList {
	if n <= limit {
		return nil
	}
	return field.ErrorList{field.TooMany(path, n, limit)}
}

func tooLong(path *field.Path, value string, limit int) field.ErrorList {
	if len(value) <= limit {
		return nil
	}
	return invalid(path, value, fmt.Sprintf("must be at most %d characters, is %d", limit, len(value)))
}

func notNegative(quantity *resource.Quantity, path *field.Path) field.ErrorList {
	if quantity == nil || quantity.Sign() >= 0 {
		return nil
	}
	return invalid(path, quantity.String(), "must not be less than 0")
}

func moreThanZero(quantity *resource.Quantity, path *field.Path) field.ErrorList {
	if quantity == nil || quantity.Sign() > 0 {
		return nil
	}
	return invalid(path, quantity.String(), "must be more than 0")
}

func atMost(value, limit *resource.Quantity, what string, path *field.Path) field.ErrorList {
	if value == nil || limit == nil || value.Cmp(*limit) <= 0 {
		return nil
	}
	return invalid(path, value.String(), fmt.Sprintf("must be at most %s, %s", what, limit))
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
