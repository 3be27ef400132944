package suggest_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	fields := []string{"name", "count", "attributes", "capacity", "taints", "poolName", "consumesCounters", "counters", "NoSchedule"}
	for word, want := range map[string]string{
		"attribute": "attributes", "Attributes": "attributes", "poolname": "poolName", "pool-name": "poolName", "cuont": "count",
		"capacities": "capacity", "noschedule": "NoSchedule", "no_schedule": "NoSchedule", "consumeCounter": "consumesCounters",
		"counter": "counters", "taint": "taints", "colour": "", "": "", "x": "", "type": "", "nmae": "name", "attr": "attributes", "nameOfGroup": "name",
	} {
		require.Equal(t, want, suggest.Nearest(word, fields), word)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"GPU_0": "gpu-0", "gpu.0": "gpu-0", "-gpu-": "gpu", "a b": "a-b", "---": "", "": "", "é": ""} {
		require.Equal(t, want, suggest.Label(text), text)
	}
	for text, want := range map[string]string{
		"nvidia.com/gpu": "gpu.nvidia.com", "gpu_a.example.com": "gpu-a.example.com", "a..b": "a.b", "a.-.b": "a.b", ".a.": "a", "a/b": "a-b", "A.b": "a.b",
	} {
		require.Equal(t, want, suggest.Subdomain(text), text)
	}
	for text, want := range map[string]string{"compute-capability": "compute_capability", "0a": "_0a", "a.b c": "a_b_c", "-": "", "": "", "_": ""} {
		require.Equal(t, want, suggest.Identifier(text), text)
	}
}

func TestQuantity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"80GiB": "80Gi", "80GB": "80G", "80 Gi": "80Gi", "80gi": "80Gi", "80g": "80G", "80KB": "80k", "80K": "80k", "80Kib": "80Ki",
		"1,000": "1000", "1.5tb": "1.5T", "80 bytes": "80", "80 b": "80", "x": "", "": "", "80ib": "", "80Gx": "", "--1": "", "1.2.3": "", "80%": "",
	} {
		got, _ := suggest.Quantity(text)
		require.Equal(t, want, got, text)
	}
}

func TestBinaryQuantity(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"80GB": "80Gi", "80 gb": "80Gi", "1.5tb": "1.5Ti", "64KB": "64Ki", "80G": "", "80GiB": "", "80 bytes": "", "x": ""} {
		_, got := suggest.Quantity(text)
		require.Equal(t, want, got, text)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"9.0": "9.0.0", "9": "9.0.0", "v1.2.3": "1.2.3", "535.104.05": "535.104.5", "00.0": "0.0.0", "1.2-rc.1": "1.2.0-rc.1", "1.2.3.4": "", "a": "", "": "", "latest": "",
	} {
		require.Equal(t, want, suggest.Version(text), text)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5": "5s", "5 s": "5s", "5sec": "5s", "5 seconds": "5s", "1 minute": "1m", "2 hours": "2h", "1d": "24h", "100 msec": "100ms", "1.5": "1.5s", "5 weeks": "", "": "", "-1": "", "soon": "",
	} {
		require.Equal(t, want, suggest.Duration(text), text)
	}
}

// FuzzSuggest: guesses never panic, and quantities and labels are valid.
func FuzzSuggest(f *testing.F) {
	f.Add("80GiB")
	f.Add("GPU_0")
	f.Add("v9.0")
	f.Fuzz(func(t *testing.T, text string) {
		quantity, binary := suggest.Quantity(text)
		for _, quantity := range slices.DeleteFunc([]string{quantity, binary}, func(text string) bool { return text == "" }) {
			_, err := resource.ParseQuantity(quantity)
			require.NoError(t, err)
		}
		if label := suggest.Label(text); label != "" && len(label) < 64 && utf8.ValidString(text) {
			require.Empty(t, content.IsDNS1123Label(label))
		}
		suggest.Nearest(text, strings.Fields(text))
		suggest.Version(text)
		suggest.Duration(text)
		suggest.Subdomain(text)
		suggest.Identifier(text)
	})
}
