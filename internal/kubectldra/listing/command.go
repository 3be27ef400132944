package listing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	question Question
	print    *printing.Flags
	streams  genericiooptions.IOStreams
	reader   *reading.Reader
}

// AddTo makes a command list a kind.
func AddTo(command *cobra.Command, kind Kind, reach *reading.Flags, streams genericiooptions.IOStreams) {
	l := &lister{Kind: kind, print: printing.NewFlags(), streams: streams}
	l.question.addFlags(command, kind.Name)
	l.print.AddTo(command)
	var isWatching bool
	command.Flags().BoolVarP(&isWatching, "watch", "w", false, "After the answer, show what changes.")
	completed := map[string]string{"pods": "pods", "claims": "resourceclaims"}[kind.Name]
	command.ValidArgsFunction = reach.CompleteNames(completed)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if err := l.print.Validate(); err != nil {
			return err
		}
		if err := l.question.complete(reach, kind.Name, arguments); err != nil {
			return err
		}
		reader, err := reach.NewReader()
		if err != nil {
			return err
		}
		l.reader = reader
		if isWatching {
			return l.watch(command.Context())
		}
		objects, err := l.readObjects(command.Context())
		if err != nil {
			return err
		}
		return l.printAnswer(objects)
	}
}

// printAnswer prints the answer, and then what it lacks.
func (l *lister) printAnswer(objects usage.Objects) error {
	if l.isBlind(objects) {
		return refuseBlind(l.reader.Unseen())
	}
	answer := l.chooseRows(objects)
	if len(answer.Rows) > 0 || !l.print.IsForPeople() {
		if err := l.printRows(answer, answer.Rows); err != nil {
			return err
		}
	} else if answer.Missing == nil {
		_, _ = fmt.Fprintln(l.streams.ErrOut, answer.Nothing)
	}
	printing.Unseen(l.streams.ErrOut, l.reader.Unseen())
	return answer.Missing
}

func (l *lister) printRows(answer *Answer, rows []Row) error {
	if l.print.IsForPeople() {
		return answer.Print(l.streams.Out, rows, l.print.Layout(l.streams.Out))
	}
	return l.print.Print(l.streams.Out, nil, listObjects(rows))
}

// isBlind reports whether nothing can be answered. Of Pods without their claims it is known what they wait for.
func (l *lister) isBlind(objects usage.Objects) bool {
	return objects.IsWithoutClaims && (objects.IsWithoutPods || l.Name == "claims")
}

// refuseBlind says that nothing can be answered, since claims cannot be read.
func refuseBlind(unseen []reading.Unseen) error {
	var reasons []string
	for _, lacked := range unseen {
		if lacked.Resource == "resourceclaims" {
			reasons = append(reasons, printing.DescribeUnseen(lacked))
		}
	}
	return errors.New(strings.Join(reasons, "\n"))
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

// readObjects reads what the question is about.
func (l *lister) readObjects(ctx context.Context) (objects usage.Objects, err error) {
	return Read(ctx, l.reader, l.question.Namespace, l.podSelector())
}
