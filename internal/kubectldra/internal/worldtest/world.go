// Package worldtest has clusters of a few objects, and asks the commands of the plugin about them.
package worldtest

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// World is a cluster.
type World struct {
	*testing.T
	Client *fake.Clientset
}

// New makes a cluster of objects, lists of objects, and documents in YAML.
func New(t *testing.T, objects ...any) *World {
	t.Helper()
	var all []runtime.Object
	for _, object := range objects {
		switch object := object.(type) {
		case runtime.Object:
			all = append(all, object)
		case []runtime.Object:
			all = append(all, object...)
		case string:
			for document := range strings.SplitSeq("\n"+object, "\n---\n") {
				if strings.TrimSpace(document) != "" {
					decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
					require.NoError(t, err, document)
					all = append(all, decoded)
				}
			}
		default:
			require.Fail(t, "not an object", "%T", object)
		}
	}
	return &World{t, fake.NewClientset(all...)}
}

// Forbid refuses resources to the user, except those in a namespace.
func (w *World) Forbid(resources ...string) {
	for _, resource := range resources {
		w.Client.PrependReactor("*", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == "", nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
		})
	}
}

// Command makes a command, such as devices.New.
type Command func(*reading.Flags, genericiooptions.IOStreams) *cobra.Command

// Answer is what a command has said.
type Answer struct {
	Out, ErrOut string
	Err         error
}

// Run runs a command in Namespace at Now, and requires that it writes nothing.
func (w *World) Run(made Command, arguments ...string) *Answer {
	w.Helper()
	var out, errOut strings.Builder
	answer := &Answer{}
	synctest.Test(w.T, func(t *testing.T) {
		time.Sleep(time.Until(Now.Time))
		answer.Err = w.execute(t.Context(), made, &out, &errOut, arguments)
	})
	for _, action := range w.Client.Actions() {
		require.Contains(w, []string{"get", "list"}, action.GetVerb(), action)
	}
	answer.Out, answer.ErrOut = out.String(), errOut.String()
	return answer
}

func (w *World) execute(ctx context.Context, made Command, out, errOut io.Writer, arguments []string) error {
	reach, root := reading.NewFlagsOf(w.Client, Namespace), &cobra.Command{Use: "kubectl-dra", SilenceErrors: true, SilenceUsage: true}
	reach.AddTo(root)
	command := made(reach, genericiooptions.IOStreams{Out: out, ErrOut: errOut})
	root.AddCommand(command)
	root.SetArgs(append([]string{command.Name()}, arguments...))
	return root.ExecuteContext(ctx)
}

// Ask returns what a command answers that succeeds and says nothing else.
func (w *World) Ask(made Command, arguments ...string) string {
	w.Helper()
	answer := w.Run(made, arguments...)
	require.NoError(w, answer.Err)
	require.Empty(w, answer.ErrOut)
	return answer.Out
}

// Items returns what a command answers to programs, as JSON.
func (w *World) Items(made Command, arguments ...string) string {
	w.Helper()
	var list struct{ Items json.RawMessage }
	require.NoError(w, json.Unmarshal([]byte(w.Run(made, append(arguments, "-o", "json")...).Out), &list))
	return string(list.Items)
}

// Tables are what a command answers, by the name of the table, for each list of arguments.
func (w *World) Tables(made Command, arguments map[string][]string) map[string]func(io.Writer) error {
	tables := map[string]func(io.Writer) error{}
	for name, given := range arguments {
		tables[name] = func(out io.Writer) error {
			_, err := io.WriteString(out, w.Ask(made, given...))
			return err
		}
	}
	return tables
}

// Watch starts a command with -w in a bubble, at Now at the earliest. The function that it returns ends the command.
func (w *World) Watch(made Command, arguments ...string) (out, errOut *runtest.Transcript, end func() error) {
	w.Helper()
	time.Sleep(time.Until(Now.Time))
	out, errOut = &runtest.Transcript{}, &runtest.Transcript{}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.execute(ctx, made, out, errOut, append(arguments, "-w")) }()
	return out, errOut, func() error {
		cancel()
		return <-ended
	}
}
