package diff

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
)

// TestActsFor: a name of its own says nothing of nodes.
func TestActsFor(t *testing.T) {
	t.Parallel()
	lease := types.NamespacedName{Namespace: "kube-system", Name: "kwok-dra"}
	for _, nodes := range []string{"", "labels zone=z1", "labels a=b and annotations c=d"} {
		for _, other := range []string{"", "labels zone=z1", "labels zone=z2"} {
			require.Equal(t, nodes == other, actsFor(installation.New(lease, true, nodes), other), "%q %q", nodes, other)
			require.Equal(t, nodes == other, actsFor(installation.New(lease, false, nodes), other), "%q %q", nodes, other)
			require.False(t, actsFor("gpus", other))
		}
	}
}
