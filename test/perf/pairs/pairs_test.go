package pairs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrder: over two rounds each way has the same mean position.
func TestOrder(t *testing.T) {
	t.Parallel()
	ways := []string{"sidecar", "watching", "raw"}
	require.Equal(t, []string{"sidecar", "watching", "raw"}, Order(0, ways))
	require.Equal(t, []string{"raw", "watching", "sidecar"}, Order(1, ways))
	require.Equal(t, []string{"sidecar", "watching", "raw"}, Order(2, ways))
	require.Equal(t, []string{"sidecar", "watching", "raw"}, ways, "what was given stays as it is")
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []time.Duration{40, 10, 30, 20}
	require.EqualValues(t, 20, Quantile(values, 0.5), "half of all are not above it")
	require.EqualValues(t, 30, Quantile(values, 0.51))
	require.EqualValues(t, 40, Quantile(values, 0.95))
	require.EqualValues(t, 40, Quantile(values, 1))
	require.EqualValues(t, 10, Quantile(values, 0))
	require.Equal(t, []time.Duration{40, 10, 30, 20}, values, "what was given stays as it is")
	require.InDelta(t, 0, Quantile([]float64(nil), 0.5), 0)
}

func TestOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, Spread{Rounds: 3, Median: 2, Min: 1, Max: 9}, Of([]float64{9, 1, 2}))
	require.Equal(t, Spread{Rounds: 4, Median: 2.5, Min: 1, Max: 9}, Of([]float64{9, 1, 2, 3}))
	require.Equal(t, Spread{Rounds: 1, Median: 7, Min: 7, Max: 7}, Of([]float64{7}))
	require.Equal(t, Spread{}, Of(nil))
}

// TestRatio: the ratios are taken within the rounds. Those of the medians would be
// another one, here 0.25.
func TestRatio(t *testing.T) {
	t.Parallel()
	require.Equal(t, Spread{Rounds: 3, Median: 2, Min: 0.01, Max: 2}, Ratio([]float64{2, 1, 200}, []float64{1, 100, 100}))
	require.Equal(t, Spread{Rounds: 1, Median: 0.5, Min: 0.5, Max: 0.5}, Ratio([]float64{1, 5, 5}, []float64{2}), "of the rounds that both have")
	require.Equal(t, Spread{}, Ratio([]float64{1}, nil))
}

// TestDrift: a machine on which each turn takes longer than the last by the same
// is not mistaken for a difference.
func TestDrift(t *testing.T) {
	t.Parallel()
	took := make([][]float64, 3)
	turn := 1000.0
	for round := range 10 {
		for _, way := range Order(round, []int{0, 1, 2}) {
			took[way] = append(took[way], turn)
			turn++
		}
	}
	for _, other := range []int{1, 2} {
		require.InDelta(t, 1, Ratio(took[0], took[other]).Median, 1e-4)
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0.92 (0.80..1.01)", Of([]float64{0.8, 0.92, 1.01}).String())
	require.Empty(t, Spread{}.String())
}
