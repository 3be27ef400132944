package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kwok-dra/kwok-dra/internal/devices"
)

func nameFor(nodeName, uid, driver, pool string, index int) string {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: types.UID(uid)}}
	return sliceName(node, &devices.Pool{Driver: driver, Name: pool}, index)
}

func TestSliceName(t *testing.T) {
	t.Parallel()
	long := strings.TrimSuffix(strings.Repeat("abcdefghi.", 26), ".")[:253]
	for name, test := range map[string]struct {
		node, driver string
		index        int
		want         string
	}{
		"short":             {"n1", "gpu.example.com", 0, "00000-gpu.example.com-n1-"},
		"index":             {"n1", "gpu.example.com", 300, "0012c-gpu.example.com-n1-"},
		"upper case driver": {"n1", "GPU.Example.com", 0, "00000-gpu.example.com-n1-"},
		"node of 253":       {long, "gpu.example.com", 0, "00000-gpu.example.com-abcdefghi.abcdefghi.abcdefghi.abcdef-"},
		"dot at the cut":    {strings.Repeat("a", 35) + "." + strings.Repeat("b", 40), "gpu.example.com", 0, "00000-gpu.example.com-" + strings.Repeat("a", 35) + "-"},
		"dashes at the cut": {strings.Repeat("a", 33) + "---b", "gpu.example.com", 0, "00000-gpu.example.com-" + strings.Repeat("a", 33) + "-"},
		"driver of 63":      {"n1", strings.Repeat("d", 63), 0, "00000-" + strings.Repeat("d", 52) + "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nameFor(test.node, "u", test.driver, "p", test.index)
			require.Equal(t, test.want, got[:len(got)-10])
			require.Regexp(t, "^[0-9a-f]{10}$", got[len(got)-10:])
			require.Empty(t, validation.IsDNS1123Subdomain(got))
			require.Equal(t, got, nameFor(test.node, "u", test.driver, "p", test.index))
		})
	}
}

// TestNamesAreDistinct: whatever sets a slice apart sets its name apart, also
// where the readable part is cut off before it, and where the parts join alike.
func TestNamesAreDistinct(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 100)
	names := map[string]string{}
	for _, node := range []string{"n", "n-1", long} {
		for _, uid := range []string{"u", "u1", long} {
			for _, driver := range []string{"d", "d1", "D", strings.Repeat("d", 63)} {
				for _, pool := range []string{"p", "1p", long, long + "1"} {
					for _, index := range []int{0, 1, 10} {
						// The UID stands for the node: a name alone says nothing.
						key := fmt.Sprint(uid, node, "/", driver, "/", pool, "/", index)
						name := nameFor(node, uid+node, driver, pool, index)
						require.NotContains(t, names, name, "%s and %s", key, names[name])
						names[name] = key
					}
				}
			}
		}
	}
}

// TestNamesKeepTheOrder: the scheduler goes through a pool by name.
func TestNamesKeepTheOrder(t *testing.T) {
	t.Parallel()
	last := ""
	for index := range 5000 {
		name := nameFor("n", "u", "d", "p", index)
		require.Less(t, last, name)
		last = name
	}
}

func FuzzNameOf(f *testing.F) {
	f.Add("n1", "gpu.example.com", "p", uint16(0))
	f.Add(strings.Repeat("a.", 126)+"a", strings.Repeat("d", 63), "p/q", uint16(300))
	f.Add("a.-.b", "UPPER.example.com", "", uint16(1))
	f.Add(strings.Repeat("a.", 30)+"a", "g", "p", uint16(4095))
	f.Fuzz(func(t *testing.T, node, driver, pool string, index uint16) {
		if len(validation.IsDNS1123Subdomain(node)) > 0 || len(validation.IsDNS1123Subdomain(strings.ToLower(driver))) > 0 || len(driver) > 63 {
			return
		}
		got := nameFor(node, "u", driver, pool, int(index))
		require.Empty(t, validation.IsDNS1123Subdomain(got), got)
		require.LessOrEqual(t, len(got), maxReadable+11)
		require.Less(t, got, nameFor(node, "u", driver, pool, int(index)+1), "the scheduler goes by names")
		require.NotEqual(t, got, nameFor(node, "v", driver, pool, int(index)))
	})
}
