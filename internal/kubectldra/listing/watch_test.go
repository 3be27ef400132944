package listing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/internal/objectstest"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// states lists Pods with their states.
func states(q *Question, cluster *usage.Cluster) *Answer {
	a := &Answer{Title: "all", Columns: []output.Column{{Name: "pod"}, {Name: "state"}, {Name: "since"}}, Nothing: "nothing"}
	for _, use := range cluster.ListUses() {
		a.Rows = append(a.Rows, Row{
			Key: use.Pod, Cells: []string{use.Pod, string(use.State), q.Age(use.Since)}, Object: use,
			Released: func() Row { return Row{Key: use.Pod, Cells: []string{use.Pod, "released", ""}} },
		})
	}
	return a
}

// TestWatch shows the answer, then the rows that change, and not that time passes.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []runtime.Object{
			objectstest.Slice("a", "gpu-0"), objectstest.Claim("train", "a", []string{"gpu-0"}, "train"), objectstest.Pod("train", "a", "train"),
			objectstest.Pod("wants", "", "wants"), objectstest.Claim("wants", "", nil),
		}
		client := fake.NewClientset(objects...)
		out, errOut := &runtest.Transcript{}, &runtest.Transcript{}
		l := &lister{
			Kind: Kind{"pods", states}, question: Question{Namespace: objectstest.Namespace}, print: printing.NewFlags(),
			streams: genericiooptions.IOStreams{Out: out, ErrOut: errOut}, reader: reading.NewReaderOf(client),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.watch(ctx) }()
		time.Sleep(5 * time.Second)
		first := out.Take()
		require.Regexp(t, `^all\n\nPOD +STATE +SINCE\ntrain +allocated.*\nwants +waiting.*\n$`, first)

		time.Sleep(5 * time.Minute)
		require.Empty(t, out.Take(), "only ages have changed")

		prepared := objectstest.Pod("train", "a", "train", objectstest.Prepared)
		_, err := client.CoreV1().Pods(objectstest.Namespace).Update(ctx, prepared, metav1.UpdateOptions{})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		require.Regexp(t, `^POD +STATE +SINCE\ntrain +prepared.*\n$`, out.Take())

		require.NoError(t, client.CoreV1().Pods(objectstest.Namespace).Delete(ctx, "wants", metav1.DeleteOptions{}))
		time.Sleep(5 * time.Second)
		require.Regexp(t, `^POD +STATE +SINCE\nwants +released.*\n$`, out.Take())
		require.Empty(t, errOut.Take())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestNames takes names with and without kinds, and refuses what has no devices.
func TestNames(t *testing.T) {
	t.Parallel()
	q := &Question{}
	for _, name := range []string{"a", "pod/b", "pods/c", "claim/d", "resourceclaim.resource.k8s.io/e"} {
		require.NoError(t, q.addName("pods", name))
	}
	require.Equal(t, []string{"a", "b", "c"}, q.Pods)
	require.Equal(t, []string{"d", "e"}, q.Claims)
	require.EqualError(t, q.addName("pods", "node/x"), "node/x: only Pods and claims have devices: write pod/NAME or claim/NAME")
	require.True(t, q.IsNamed())
}

// TestFlags refuses what is no state, no attribute and no selector.
func TestFlags(t *testing.T) {
	t.Parallel()
	reach := reading.NewFlags()
	require.EqualError(t, (&Question{States: []string{"prepard"}}).complete(reach, "pods", nil), "parse --state prepard: there is no such state: did you mean prepared?")
	require.EqualError(t, (&Question{Attributes: []string{"=H100"}}).complete(reach, "pods", nil), `parse --attribute "=H100": write NAME=VALUE, NAME!=VALUE or NAME, such as model=*H100*`)
	require.ErrorContains(t, (&Question{selector: "a in"}).complete(reach, "pods", nil), "parse --selector: ")
	require.EqualError(t, (&Question{selector: "a=b"}).complete(reach, "pods", []string{"x"}), "names cannot be given with -l or -A")
}

// TestRead: slices are read only if a claim has a device, and rows say what could not be read.
func TestRead(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(objectstest.Pod("wants", "", "wants"), objectstest.Claim("wants", "", nil))
	objects, err := Read(t.Context(), reading.NewReaderOf(client), objectstest.Namespace, "")
	require.NoError(t, err)
	require.Len(t, objects.Pods, 1)
	for _, action := range client.Actions() {
		require.NotEqual(t, "resourceslices", action.GetResource().Resource)
	}
}
