package output

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPercent(t *testing.T) {
	t.Parallel()
	for part, want := range map[float64]string{0: "0%", 0.001: "<1%", 0.126: "13%", 0.999: ">99%", 1: "100%"} {
		require.Equal(t, want, Percent(part))
	}
}
