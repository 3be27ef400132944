package features

import (
	"context"
	"slices"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Server is an API server, or what is known of one.
type Server interface {
	// Keeps reports whether it keeps a field.
	Keeps(ctx context.Context, field *Field) (bool, error)
	// Layout is how it wants pools with counters to be divided. It is known once Keeps was
	// called for Counters.
	Layout() devices.Layout
}

// Fitted are pools as an API server accepts them.
type Fitted struct {
	Pools   []devices.Pool
	Layout  devices.Layout
	Dropped []Dropped
}

// Dropped is a field that an API server drops.
type Dropped struct {
	// Source is the name of the template that has the field, or of the annotation with device
	// taints.
	Source string
	Field  *Field
}

// Fit makes the pools as a server accepts them: without the fields that it drops, and without
// the pools that would be wrong without a field.
func Fit(ctx context.Context, server Server, pools []devices.Pool) (Fitted, error) {
	var fitted Fitted
	for _, pool := range pools {
		isWrong := false
		for i := range Fields {
			field := &Fields[i]
			if !field.used(&pool) {
				continue
			}
			isKept, err := server.Keeps(ctx, field)
			switch {
			case err != nil:
				return Fitted{}, err
			case isKept:
				continue
			case field.Without != "":
				isWrong = true
			default:
				field.clear(&pool)
			}
			for _, source := range sourcesOf(&pool, field) {
				fitted.Dropped = append(fitted.Dropped, Dropped{source, field})
			}
		}
		if !isWrong {
			fitted.Pools = append(fitted.Pools, pool)
		}
	}
	fitted.Layout = server.Layout()
	return fitted, nil
}

// sourcesOf names the templates of the pool that have the field. If none has it, it comes from
// the annotation.
func sourcesOf(pool *devices.Pool, field *Field) []string {
	var names []string
	for _, t := range pool.Templates {
		if t.Uses(field.used) {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		names = []string{v1alpha1.DeviceTaintsAnnotation}
	}
	return names
}

// InUse reports whether the source still has the field. The annotation always counts.
func (d Dropped) InUse(templates []*devices.Template) bool {
	return d.Source == v1alpha1.DeviceTaintsAnnotation || slices.ContainsFunc(templates, func(t *devices.Template) bool {
		return t.Name == d.Source && t.Uses(d.Field.used)
	})
}
