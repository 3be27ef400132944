package check

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
)

// New makes the command.
func New(reach *reading.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "check",
		Short: "Look for what is wrong with devices and claims, and say how to mend it.",
		Long: `Look for what is wrong with devices and claims, and say how to mend it. Each finding
comes with what the API says, and with the command that mends it, or that shows more
where no command can. Nothing is written.

A problem keeps Pods from running, or devices from being used. A hint may be as it is
meant to be. With -n, claims of one namespace are checked; otherwise those of all that
you may list. The exit code is 1 if there are problems, and 2 if you may list neither
ResourceSlices nor ResourceClaims.`,
		Example: `  # What is wrong in the cluster?
  kubectl dra check

  # What is wrong with the claims of one namespace?
  kubectl dra check -n training

  # All findings, with the commands that mend them
  kubectl dra check -o jsonpath='{range .items[*]}{.object}{"\t"}{.fix}{"\n"}{end}'`,
		Args: cobra.NoArgs,
	}
	f := printing.NewFrame(command, reach, streams)
	f.Run(command, nil, func(ctx context.Context) error {
		w, err := readWorld(ctx, f.Reader, f.Namespace, command.Flags().Changed("namespace"))
		if err != nil {
			return err
		}
		if w.IsWithoutSlices && w.IsWithoutClaims { // each check needs one of them
			return f.Reader.ExplainUnseen("resourceslices", "resourceclaims")
		}
		findings, skipped := Check(ctx, w)
		if f.IsForPeople() {
			err = writeFindings(f.Out, countFindings(w, findings), findings, skipped)
		} else {
			err = printing.PrintObjects(f, findings)
		}
		if err != nil {
			return err
		}
		f.TellUnseen()
		if len(findings) > 0 && findings[0].Level == Problem {
			return cli.ErrNegative
		}
		return nil
	})
	return command
}

// readWorld reads a cluster. Where the user may not list the claims of all namespaces, those of the user's own are read.
func readWorld(ctx context.Context, reader *reading.Reader, own string, isOwnOnly bool) (*World, error) {
	w := &World{Now: time.Now(), Unseen: map[string]bool{}}
	if isOwnOnly {
		w.Namespace = own
	}
	var rules []*resourcev1.DeviceTaintRule
	err := reading.InParallel(append(w.namespacedReads(ctx, reader),
		func() (err error) { w.Slices, w.Writers, err = reader.SlicesAndWriters(ctx); return err },
		func() (err error) { w.Classes, err = reader.Classes(ctx); return err },
		func() (err error) { w.Nodes, err = reader.Nodes(ctx); return err },
		func() (err error) { rules, err = reader.TaintRules(ctx); return err },
	)...)
	if err == nil && isUnseen(reader, "resourceclaims", w.Namespace) && !isOwnOnly {
		w.Namespace = own
		err = reading.InParallel(w.namespacedReads(ctx, reader)...)
	}
	w.Rules = listing.ConvertRules(rules)
	for _, resource := range []string{"pods", "resourceclaims", "resourceclaimtemplates"} {
		w.Unseen[resource] = isUnseen(reader, resource, w.Namespace)
	}
	for _, resource := range []string{"resourceslices", "deviceclasses", "nodes", "devicetaintrules"} {
		w.Unseen[resource] = isUnseen(reader, resource, "")
	}
	w.IsWithoutPods, w.IsWithoutClaims, w.IsWithoutSlices = w.Unseen["pods"], w.Unseen["resourceclaims"], w.Unseen["resourceslices"]
	return w, err
}

func (w *World) namespacedReads(ctx context.Context, reader *reading.Reader) []func() error {
	return []func() error{
		func() (err error) { w.Claims, err = reader.Claims(ctx, w.Namespace); return err },
		func() (err error) { w.ClaimTemplates, err = reader.ClaimTemplates(ctx, w.Namespace); return err },
		func() (err error) { w.Pods, err = reader.Pods(ctx, w.Namespace, ""); return err },
	}
}

func isUnseen(reader *reading.Reader, resource, namespace string) bool {
	return slices.ContainsFunc(reader.Unseen(), func(unseen reading.Unseen) bool {
		return unseen.Resource == resource && unseen.Namespace == namespace
	})
}
