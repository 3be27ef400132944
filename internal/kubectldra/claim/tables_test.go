package claim

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/objectstest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

func tellOf(name string) *Story {
	objects := objectstest.Objects()
	read := &history.Story{Pods: map[string]*corev1.Pod{}, Events: objects.Failures}
	for _, pod := range objects.Pods {
		read.Pods[pod.Name] = pod
	}
	for _, claim := range objects.Claims {
		if claim.Name == name {
			read.Claim = claim
		}
	}
	return tell(read, usage.NewCluster(objects))
}

// TestTables renders claims that are used, that wait, and that nobody releases.
func TestTables(t *testing.T) {
	shows := func(names ...string) func(out io.Writer) error {
		return func(out io.Writer) error {
			var stories []*Story
			for _, name := range names {
				stories = append(stories, tellOf(name))
			}
			return printStories(out, printing.NewFlags(), stories, objectstest.Now)
		}
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"show": shows("train-gpus"), "show-failing": shows("serve"), "show-waiting": shows("wants"), "show-stuck": shows("left", "ended"),
	}, tabletest.Pod)
}

// TestHolders: whoever holds the claim has a line, even if it is gone.
func TestHolders(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Holder{{Name: "pods/left", State: "gone: the Pod does not exist"}}, tellOf("left").Holders)
	require.Equal(t, []Holder{{Name: "pods/ending", Node: "b", State: "is being deleted"}}, tellOf("ending").Holders)
	data, err := json.Marshal(tellOf("nobody"))
	require.NoError(t, err)
	require.JSONEq(t, `{"namespace": "ml", "claim": "nobody", "state": "unused", "since": "2026-01-02T03:04:05Z", "pods": [], "devices": [], "reason": "no Pod names the claim",
		"holders": [], "steps": [{"time": "2026-01-02T03:04:05Z", "step": "created", "detail": "gpu wants 1 of gpu"}]}`, string(data))
}
