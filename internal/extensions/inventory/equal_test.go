package inventory

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// full is an item with something in every field.
func full() *Item {
	return &Item{ID: "node/n", Node: "n", NotReady: true, Pools: []Pool{{
		Driver: "d", Kind: "k", Name: "n", Generation: 1, Slices: 1, SliceCount: 1, Usage: Usage{Used: 1, Total: 2},
		Devices: []Device{{
			Name: "gpu-0", State: Tainted, Shared: true, Used: 0.5, BlockedBy: "capacity m",
			Claims: []Claim{{
				Namespace: "x", Name: "c", Prepared: true, ShareID: "s", AdminAccess: true, Failure: "no", Pods: []string{"p"},
				Consumed: map[resourcev1.QualifiedName]resource.Quantity{"m": resource.MustParse("1Gi")},
			}},
			Taints: []Taint{{Key: "k", Value: "v", Effect: "NoExecute", TimeAdded: time.Unix(1, 0), Rule: "r"}},
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
