package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearestName(t *testing.T) {
	t.Parallel()
	profiles := []string{"nvidia-h100-mig", "nvidia-h100", "nvidia-l4", "google-tpu-v5e"}
	for name, want := range map[string]string{"h100": "nvidia-h100", "H100-MIG": "nvidia-h100-mig", "mig": "nvidia-h100-mig", "v5e_tpu": "google-tpu-v5e", "h10": "", "": "", "-": "", "nvidia-t4": "nvidia-l4"} {
		require.Equal(t, want, NearestName(name, profiles), name)
	}
}
