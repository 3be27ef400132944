package listing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// Kind is what a command lists.
type Kind struct {
	// Name is pods or claims: what arguments without a kind name, and what -l selects.
	Name string
	// Answer finds the answer to a question. It is pure.
	Answer func(q *Question, cluster *usage.Cluster) *Answer
}

// lister lists what a question asks for.
type lister struct {
	Kind
	*printing.Frame
	question Question
}

// AddTo makes a command list a kind.
func AddTo(command *cobra.Command, kind Kind, reach *reading.Flags, streams genericiooptions.IOStreams) {
	l := &lister{Kind: kind, Frame: printing.NewFrame(command, reach, streams)}
	l.question.addFlags(command, kind.Name)
	reading.AddAllNamespaces(command, &l.AllNamespaces)
	var isWatching bool
	command.Flags().BoolVarP(&isWatching, "watch", "w", false, "After the answer, show what changes.")
	completed := map[string]string{"pods": "pods", "claims": "resourceclaims"}[kind.Name]
	command.ValidArgsFunction = reach.CompleteNames(completed)
	l.Run(command, func(arguments []string) error {
		l.question.Namespace = l.Namespace
		return l.question.complete(kind.Name, arguments, l.AllNamespaces)
	}, func(ctx context.Context) error {
		if isWatching {
			return l.watch(ctx)
		}
		objects, err := Read(ctx, l.Reader, l.Namespace, l.podSelector())
		if err != nil {
			return err
		}
		return l.printAnswer(objects)
	})
}

// printAnswer prints the answer, and then what it lacks.
func (l *lister) printAnswer(objects usage.Objects) error {
	if l.isBlind(objects) {
		return l.Reader.ExplainUnseen("resourceclaims")
	}
	answer := l.chooseRows(objects)
	if len(answer.Rows) > 0 || !l.IsForPeople() {
		if err := l.printRows(answer, answer.Rows); err != nil {
			return err
		}
	} else if answer.Missing == nil {
		_, _ = fmt.Fprintln(l.ErrOut, answer.Nothing)
	}
	l.TellUnseen()
	return answer.Missing
}

func (l *lister) printRows(answer *Answer, rows []Row) error {
	if l.IsForPeople() {
		return answer.Print(l.Out, rows, l.Layout(l.Out))
	}
	objects := make([]any, len(rows))
	for i := range rows {
		objects[i] = rows[i].Object
	}
	return l.Print(l.Out, nil, objects)
}

// isBlind reports whether nothing can be answered. Of Pods without their claims it is known what they wait for.
func (l *lister) isBlind(objects usage.Objects) bool {
	return objects.IsWithoutClaims && (objects.IsWithoutPods || l.Name == "claims")
}

func (l *lister) chooseRows(objects usage.Objects) *Answer {
	l.question.Now = time.Now()
	return l.Answer(&l.question, usage.NewCluster(l.selectClaims(objects)))
}

// selectClaims leaves the claims that -l selects. Of Pods, it is the API server that selects.
func (l *lister) selectClaims(objects usage.Objects) usage.Objects {
	selector, err := labels.Parse(l.question.selector)
	if err != nil || l.podSelector() != "" {
		return objects
	}
	objects.Claims = slices.DeleteFunc(slices.Clone(objects.Claims), func(claim *resourcev1.ResourceClaim) bool {
		return !selector.Matches(labels.Set(claim.Labels))
	})
	return objects
}

func (l *lister) podSelector() string {
	if l.Name == "pods" {
		return l.question.selector
	}
	return ""
}
