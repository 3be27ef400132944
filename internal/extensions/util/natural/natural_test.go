package natural

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	want := []string{"", "1", "a", "gpu", "gpu-0", "gpu-2", "gpu-02", "gpu-2-mig-9", "gpu-2-mig-10", "gpu-2a", "gpu-10", "gpu-99999999999999999999", "node-1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	// Of names that differ only in zeros, the order is that of the bytes.
	want[5], want[6] = "gpu-02", "gpu-2"
	require.Equal(t, want, got)
	for _, a := range want {
		for _, b := range want {
			require.Equal(t, -Compare(b, a), Compare(a, b), "%q %q", a, b)
			require.Equal(t, a == b, Compare(a, b) == 0, "%q %q", a, b)
		}
	}
}
