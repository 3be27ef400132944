package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
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
	var names []string
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
	}
	f := printing.NewFrame(command, reach, streams)
	f.Run(command, func(arguments []string) (err error) {
		names, err = parseNames(arguments)
		return err
	}, func(ctx context.Context) error {
		stories := make([]*Story, len(names))
		for i, name := range names {
			var err error
			if stories[i], err = readStory(ctx, f.Reader, f.Namespace, name); err != nil {
				return err
			}
		}
		if err := printStories(f, stories, time.Now()); err != nil {
			return err
		}
		f.TellUnseen()
		return nil
	})
	return command
}

// printStories prints stories one below the other.
func printStories(f *printing.Frame, stories []*Story, now time.Time) error {
	if !f.IsForPeople() {
		return printing.PrintObjects(f, stories)
	}
	for i, story := range stories {
		separator := ""
		if i > 0 {
			separator = "\n"
		}
		if err := output.Text(f.Out, separator+story.describeStory(now)+"\n"); err != nil {
			return err
		}
		if err := f.Print(f.Out, output.Tables{steps.StepTable(story.Steps)}, nil); err != nil {
			return err
		}
	}
	return nil
}

func parseNames(arguments []string) ([]string, error) {
	names := make([]string, len(arguments))
	for i, argument := range arguments {
		kind, name, hasKind := strings.Cut(argument, "/")
		if !hasKind {
			name = argument
		} else if singular := strings.TrimSuffix(strings.TrimSuffix(kind, ".resource.k8s.io"), "s"); singular != "claim" && singular != "resourceclaim" {
			return nil, fmt.Errorf("%s is no claim: write NAME or claim/NAME", argument)
		}
		names[i] = name
	}
	return names, nil
}

// readStory reads a claim, with its managed fields, and what has to do with it.
func readStory(ctx context.Context, reader *reading.Reader, namespace, name string) (*Story, error) {
	claim, err := reader.GetClaim(ctx, namespace, name)
	if err != nil {
		return nil, err
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
