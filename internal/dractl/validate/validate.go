package validate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
)

type command struct {
	streams cli.Streams
	files   documents.Files
	output  output.Flag
}

// New makes the command.
func New(streams cli.Streams, _ *cluster.Flags) *cobra.Command {
	c := &command{streams: streams}
	made := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Find all mistakes in what kwok-dra reads.",
		Long: `Find all mistakes in what kwok-dra reads: ResourcePoolTemplates and
KwokDRAConfigurations, ConfigMaps that carry them, the ConfigMap
dra-kwok-configmap, Karpenter's DRAConfigs and NodeOverlays, and KWOK's Stages.

Each mistake is a line: file:line: object: field: message. A document that
contradicts another is a mistake too, such as a field of KwokDRAConfigurations that
is set twice. Objects of other kinds are skipped; the last line counts them. With -R
documents that are no objects of Kubernetes, such as the values of a chart, are
skipped and counted too. The command needs no cluster.

The exit code is 1 if there are mistakes.`,
		Example: `  # Check a file
  kwok-dractl validate -f templates.yaml

  # Check all that is in a directory and below it
  kwok-dractl validate -R -f .

  # Check what kustomize renders, for example in CI
  kubectl kustomize profile | kwok-dractl validate -f -

  # For programs
  kwok-dractl validate -f invalid.yaml -o json`,
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return c.runValidate() },
	}
	c.files.AddTo(made, "what to check")
	c.output.AddTo(made, output.Table, output.JSON, output.YAML, output.Name)
	return made
}

func (c *command) runValidate() error {
	if len(c.files.Paths) == 0 {
		return errors.New("nothing to check: give -f FILE")
	}
	all, err := c.files.Read(c.streams)
	if err != nil {
		return err
	}
	progress := c.streams.Progress("checking documents", 0)
	result := check.Documents(all)
	progress.Done()
	if err := result.Err(); err != nil {
		c.tellFindings(result.Notes)
		c.tellSkipped(result)
		return fmt.Errorf("check %s: %w", strings.Join(c.files.Paths, ", "), err)
	}
	if err := c.printResult(result); err != nil {
		return err
	}
	if len(result.Problems) > 0 {
		return cli.ErrNegative
	}
	return nil
}

func (c *command) printResult(result *check.Result) error {
	switch c.output.Format {
	case output.JSON, output.YAML:
		return output.Value(c.streams.Out, c.output.Format, result)
	case output.Name:
		for _, checked := range result.Checked {
			if _, err := fmt.Fprintf(c.streams.Out, "%s/%s\n", strings.ToLower(checked.Kind), checked.Name); err != nil {
				return err
			}
		}
		c.tellFindings(result.Problems)
		return nil
	}
	var text strings.Builder
	for _, problem := range result.Problems {
		fmt.Fprintln(&text, problem)
	}
	if err := output.Text(c.streams.Out, text.String()); err != nil {
		return err
	}
	c.tellFindings(result.Notes)
	if len(result.Problems) == 0 {
		c.streams.Tell("%d valid\n", len(result.Checked))
	}
	c.tellSkipped(result)
	return nil
}

// tellSkipped says in one line what was not checked.
func (c *command) tellSkipped(result *check.Result) {
	if len(result.Skipped) > 0 {
		c.streams.Tell("skipped what kwok-dra does not read: %s\n", cli.Counted(result.Skipped))
	}
}

func (c *command) tellFindings(findings []check.Finding) {
	for _, finding := range findings {
		c.streams.Tell("%v\n", finding)
	}
}
