package claim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
)

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	format := printing.NewFlags()
	command := &cobra.Command{
		Use:     "claim NAME...",
		Aliases: []string{"resourceclaim"},
		Short:   "Show what has happened to a claim, when, and who holds it.",
		Long: `Show what has happened to a claim, when, and who holds it.

The steps are from the claim, its managed fields, the conditions of its devices, the
Pods that it is reserved for, and the events of all these. The API keeps most times
in whole seconds. Where it keeps no time of the allocation, the step has the time at
which the scheduler last wrote the claim. A claim is prepared for a Pod since the
Pod's condition PodReadyToStartContainers is True.`,
		Example: `  # What has happened to the claim "training"
  kubectl dra claim training

  # When was each claim of a namespace allocated?
  kubectl dra claim training serving -o jsonpath='{range .items[*]}{.claim}{"\t"}{.steps[?(@.step=="allocated")].time}{"\n"}{end}'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: reach.CompleteNames("resourceclaims"),
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := format.Validate(); err != nil {
				return err
			}
			namespace, err := reach.Namespace(false)
			if err != nil {
				return err
			}
			reader, err := reach.NewReader()
			if err != nil {
				return err
			}
			stories, err := readStories(command.Context(), reader, namespace, arguments)
			if err != nil {
				return err
			}
			if err := printStories(streams.Out, format, stories, time.Now()); err != nil {
				return err
			}
			printing.Unseen(streams.ErrOut, reader.Unseen())
			return nil
		},
	}
	format.AddTo(command)
	return command
}

// printStories prints stories one below the other.
func printStories(out io.Writer, format *printing.Flags, stories []*Story, now time.Time) error {
	if !format.IsForPeople() {
		objects := make([]any, len(stories))
		for i := range stories {
			objects[i] = stories[i]
		}
		return format.Print(out, nil, objects)
	}
	for i, story := range stories {
		separator := ""
		if i > 0 {
			separator = "\n"
		}
		if err := output.Text(out, separator+story.describeStory(now)+"\n"); err != nil {
			return err
		}
		if err := format.Print(out, output.Tables{steps.StepTable(story.Steps)}, nil); err != nil {
			return err
		}
	}
	return nil
}

func readStories(ctx context.Context, reader *reading.Reader, namespace string, arguments []string) ([]*Story, error) {
	stories := make([]*Story, len(arguments))
	for i, argument := range arguments {
		kind, name, hasKind := strings.Cut(argument, "/")
		if !hasKind {
			name = argument
		} else if singular := strings.TrimSuffix(strings.TrimSuffix(kind, ".resource.k8s.io"), "s"); singular != "claim" && singular != "resourceclaim" {
			return nil, fmt.Errorf("%s is no claim: write NAME or claim/NAME", argument)
		}
		var err error
		if stories[i], err = readStory(ctx, reader, namespace, name); err != nil {
			return nil, err
		}
	}
	return stories, nil
}

// readStory reads a claim, with its managed fields, and what has to do with it.
func readStory(ctx context.Context, reader *reading.Reader, namespace, name string) (*Story, error) {
	claim, err := reader.Client().ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		claims, err := reader.Claims(ctx, namespace)
		if err != nil {
			return nil, err
		}
		return nil, steps.ExplainMissing(namespace, name, claims)
	}
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%s", printing.DescribeUnseen(reading.Unseen{Verb: "get", Resource: "resourceclaims", Namespace: namespace, IsForbidden: true}))
	}
	if err != nil {
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	objects, events, err := listing.ReadFor(ctx, reader, claim)
	if err != nil {
		return nil, err
	}
	read := &history.Story{Claim: claim, Pods: map[string]*corev1.Pod{}, Events: events}
	for _, pod := range objects.Pods {
		read.Pods[pod.Name] = pod
	}
	return tell(read, usage.NewCluster(objects)), nil
}
