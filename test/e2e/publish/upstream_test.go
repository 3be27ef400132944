package publish

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const upstreamDriver = "upstream.example.com"

// TestGenerationIsUpstreams changes the devices of two pools of a node in the
// same way, again and again. One is kwok-dra's, the other that of the controller
// that real drivers publish with. Both always end in the same generation.
func TestGenerationIsUpstreams(t *testing.T) {
	t.Parallel()
	h := harness.New(t, cluster.Options{})
	h.Sidecar()
	node := h.CreateNode("node", "upstream")
	delay := 100 * time.Millisecond
	upstream, err := resourceslice.StartController(t.Context(), resourceslice.Options{
		DriverName: upstreamDriver,
		KubeClient: h.Client,
		Owner:      &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		SyncDelay:  &delay,
	})
	require.NoError(t, err)
	t.Cleanup(upstream.Stop)

	random := rand.New(rand.NewPCG(1, 2))
	for step := range 25 {
		contents := randomContents(random)
		h.Configure("upstream", harness.Template("upstream", harness.Driver, "upstream", groups(contents)))
		upstream.Update(&resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node.Name: {Slices: upstreamSlices(contents)}}})
		h.Eventually(harness.Patience, func() string {
			ours, theirs := h.Pool(node.Name, harness.Driver), h.Pool(node.Name, upstreamDriver)
			for _, pool := range [][]resourcev1.ResourceSlice{ours, theirs} {
				if got := strings.Join(harness.DeviceNames(pool), " "); got != strings.Join(wantedNames(contents), " ") {
					return fmt.Sprintf("step %d: pool has not the devices of %v", step, contents)
				}
				if missing := harness.CompletePool(pool, len(wantedNames(contents))); missing != "" {
					return missing
				}
			}
			if harness.Generation(ours) != harness.Generation(theirs) {
				return fmt.Sprintf("step %d: generation is %d, upstream's %d", step, harness.Generation(ours), harness.Generation(theirs))
			}
			return ""
		})
	}
}

// randomContents draws what up to four slices hold. All but the last are full.
func randomContents(random *rand.Rand) []string {
	contents := make([]string, 1+random.IntN(4))
	for i := range contents {
		contents[i] = fmt.Sprintf("%c%d", 'a'+rune(random.IntN(2)), i)
	}
	return contents
}

func sizeOf(contents []string, slice int) int {
	if slice == len(contents)-1 {
		return 1
	}
	return resourcev1.ResourceSliceMaxDevices
}

// groups are the device groups of a template that makes slices of the contents.
func groups(contents []string) string {
	var made []string
	for i, content := range contents {
		made = append(made, fmt.Sprintf("{name: %s, count: %d}", content, sizeOf(contents, i)))
	}
	return "[" + strings.Join(made, ", ") + "]"
}

func upstreamSlices(contents []string) []resourceslice.Slice {
	var made []resourceslice.Slice
	for i, content := range contents {
		var slice resourceslice.Slice
		for j := range sizeOf(contents, i) {
			slice.Devices = append(slice.Devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", content, j)})
		}
		made = append(made, slice)
	}
	return made
}

func wantedNames(contents []string) []string {
	var names []string
	for _, slice := range upstreamSlices(contents) {
		for _, device := range slice.Devices {
			names = append(names, device.Name)
		}
	}
	return names
}
