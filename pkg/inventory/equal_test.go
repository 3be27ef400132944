package inventory

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full is an item with something in every field.
func full() *Item {
	return &Item{ID: "node/n", Node: "n", Pools: []Pool{{
		Driver: "d", Name: "n", Generation: 1, Slices: 1, SliceCount: 1,
		Devices: []Device{{
			Name: "gpu-0", State: Tainted,
			Claims: []Claim{{Namespace: "x", Name: "c", Prepared: true, ShareID: "s", AdminAccess: true, Pods: []string{"p"}}},
			Taints: []Taint{{Key: "k", Value: "v", Effect: "NoExecute", TimeAdded: time.Unix(1, 0)}},
		}},
	}}}
}

// TestEqual empties each field in turn.
func TestEqual(t *testing.T) {
	t.Parallel()
	require.True(t, full().Equal(full()))
	for name, part := range map[string]func(*Item) any{
		"item":   func(i *Item) any { return i },
		"pool":   func(i *Item) any { return &i.Pools[0] },
		"device": func(i *Item) any { return &i.Pools[0].Devices[0] },
		"claim":  func(i *Item) any { return &i.Pools[0].Devices[0].Claims[0] },
		"taint":  func(i *Item) any { return &i.Pools[0].Devices[0].Taints[0] },
	} {
		fields := reflect.ValueOf(part(full())).Elem().NumField()
		for field := range fields {
			changed := full()
			value := reflect.ValueOf(part(changed)).Elem()
			require.False(t, value.Field(field).IsZero(), "%s has something in field %d", name, field)
			value.Field(field).SetZero()
			require.False(t, full().Equal(changed), "%s.%s", name, value.Type().Field(field).Name)
		}
	}
}
