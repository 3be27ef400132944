package generate

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/dractl/check"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cli"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/output"
	publish "github.com/kwok-dra/kwok-dra/pkg/slices"
)

// published are the slices that templates yield on nodes.
func published(t *testing.T, version, text string, nodes []*corev1.Node) []*resourcev1.ResourceSlice {
	t.Helper()
	result := check.Documents(documents.Split("templates", []byte(text)))
	require.Empty(t, result.Problems)
	release, err := publish.EverythingOn(version)
	require.NoError(t, err)
	preview, err := publish.NewRendererFor(release, func(string, string) {}).Preview(t.Context(), publish.State{Config: result.Set.Published(), Nodes: nodes})
	require.NoError(t, err)
	require.Empty(t, preview.Problems)
	require.NotEmpty(t, preview.Create)
	return preview.Create
}

// copyOf runs the command on nodes and slices, and returns what it prints.
func copyOf(t *testing.T, nodes []*corev1.Node, made []*resourcev1.ResourceSlice) (printed, told string) {
	t.Helper()
	var in, out, told2 bytes.Buffer
	require.NoError(t, output.Objects(&in, output.JSON, nodes))
	in.WriteString("---\n")
	require.NoError(t, output.Objects(&in, output.JSON, made))
	command := New(cli.Streams{In: &in, Out: &out, ErrOut: &told2}, &cluster.Flags{})
	command.SetArgs([]string{"-f", "-"})
	require.NoError(t, command.ExecuteContext(t.Context()))
	return out.String(), told2.String()
}

// nodesIn are the nodes in a text, with the uids of others of their names.
func nodesIn(t *testing.T, text string, like []*corev1.Node) []*corev1.Node {
	t.Helper()
	objects, err := documents.Objects(documents.Split("copy", []byte(text)))
	require.NoError(t, err)
	uids := map[string]types.UID{}
	for _, node := range like {
		uids[node.Name] = node.UID
	}
	var nodes []*corev1.Node
	for _, object := range objects {
		if object.GetKind() == "Node" {
			node := &corev1.Node{}
			require.NoError(t, object.Into(node))
			node.UID = uids[node.Name]
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// numbered gives nodes uids, as a cluster does.
func numbered(nodes []*corev1.Node) []*corev1.Node {
	for i, node := range nodes {
		node.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
	}
	return nodes
}

// encoded are the slices by name, as they are printed.
func encoded(t *testing.T, made []*resourcev1.ResourceSlice) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, slice := range made {
		var text bytes.Buffer
		require.NoError(t, output.Objects(&text, output.YAML, []*resourcev1.ResourceSlice{slice}))
		texts[slice.Name] = text.String()
	}
	require.Len(t, texts, len(made))
	return texts
}

// TestCopyOfProfiles: a copy of nodes with the hardware of a profile publishes
// what they do, to the letter.
func TestCopyOfProfiles(t *testing.T) {
	t.Parallel()
	names, err := profileNames()
	require.NoError(t, err)
	require.Greater(t, len(names), 12)
	for _, name := range names {
		for _, version := range []string{"1.34", "1.37"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				profile, err := readProfile(name)
				require.NoError(t, err)
				nodes := numbered(profileNodes(name, name, 0, 3))
				made := published(t, version, string(profile.templates), nodes)
				printed, told := copyOf(t, nodes, made)
				require.Empty(t, told)
				again := published(t, version, printed, nodesIn(t, printed, nodes))
				require.Equal(t, encoded(t, made), encoded(t, again))
			})
		}
	}
}
