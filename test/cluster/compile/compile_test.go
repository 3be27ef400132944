package compile

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/test/cluster/progress"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	step := progress.Start(io.Discard, "test")
	defer step.Finish(nil)
	lines := []string{"go: downloading k8s.io/api v0.36.3", "k8s.io/api/core/v1", "# k8s.io/broken", "broken/x.go:1:2: undefined: y"}
	require.Equal(t, lines[2:], Follow(strings.NewReader(strings.Join(lines, "\n")), 4, step))
}
