package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
)

type command struct {
	streams                           cli.Streams
	reach                             *cluster.Flags
	node, driver, nodeSelector        string
	pluginsDir, cdiFolder, metricsURL string
}

// New makes the command.
func New(streams cli.Streams, reach *cluster.Flags) *cobra.Command {
	c := &command{streams: streams, reach: reach}
	made := &cobra.Command{
		Use:   "record --node NODE",
		Short: "Print templates of what real drivers do on one node, for many nodes.",
		Long: `Print templates of what real drivers do on one node, for many nodes.

There is a template for each pool that a real driver has on the node. Its devices
are those of the driver's slices. The name of the node becomes that of each node,
and so do UUIDs in attributes.

Its claimStatus is learned from claims with devices of the node, so run Pods with
different devices on it first: data and networkData from what the driver has
written to the claims, and with --plugins-dir the CDI devices from what it has
returned. Values that are attributes of the device, or names and uids of the node,
the claim and its Pod, become Go templates. All others are kept as they are. What
nothing explains, and pools that are left out, such as those without devices, are
printed as a comment, and on standard error.`,
		Example: `  # Templates of what drivers do on node h100-0
  kwok-dractl record --node h100-0 > recorded.yaml

  # With what they return to the kubelet of the fake node, and how long they take
  kwok-dractl record --node h100-0 --plugins-dir /var/lib/kwok-dra --metrics http://127.0.0.1:10246/metrics --node-selector type=recorded`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.runRecord(command.Context()) },
	}
	flags := made.Flags()
	flags.StringVar(&c.node, "node", "", "node with the real drivers")
	flags.StringVar(&c.driver, "driver", "", "record this driver only")
	flags.StringVar(&c.nodeSelector, "node-selector", "", "label selector of the nodes that the templates are for; default: the label copy.dra.kwok.x-k8s.io/DRIVER=0")
	flags.StringVar(&c.pluginsDir, "plugins-dir", "", "directory that kwok-dra has as --plugins-dir, for what drivers have returned to the kubelet")
	flags.StringVar(&c.cdiFolder, "cdi", "", "folder of CDI specs, to print what the CDI devices do to a container; needs --plugins-dir")
	flags.StringVar(&c.metricsURL, "metrics", "", "URL of kwok-dra's /metrics, for how long the drivers take")
	flags.Func("nodes", "", func(string) error {
		return errors.New("it is a number of nodes elsewhere: give the labels as --node-selector")
	})
	_ = flags.MarkHidden("nodes")
	// It fails only for a flag that does not exist.
	_ = made.RegisterFlagCompletionFunc("node", reach.CompleteNodes)
	return made
}

func (c *command) runRecord(ctx context.Context) error {
	selector, err := c.nodeSelectorFor()
	if err != nil {
		return err
	}
	defer c.streams.Progress("recording node "+c.node, 0).Done()
	client, err := c.reach.Client()
	if err != nil {
		return err
	}
	w, err := readCluster(ctx, client, c.node, c.driver)
	if err != nil {
		return err
	}
	if len(w.slices) == 0 {
		c.streams.Tell("node %s has no ResourceSlice of a real driver\n", c.node)
		return cli.ErrNegative
	}
	took, err := c.readFiles(ctx, w)
	if err != nil {
		return err
	}
	text, notes, err := recordTemplates(ctx, w, selector, took)
	if err != nil {
		return err
	}
	for _, note := range notes {
		c.streams.Tell("%s\n", note)
	}
	if len(text) == 0 {
		c.streams.Tell("no pool of node %s can be recorded\n", c.node)
		return cli.ErrNegative
	}
	_, err = c.streams.Out.Write(text)
	return err
}

// nodeSelectorFor is that of the nodes that the templates are for, or nil for the default.
func (c *command) nodeSelectorFor() (*corev1.NodeSelector, error) {
	if c.node == "" {
		return nil, errors.New("--node is missing: give the node with the real drivers")
	}
	if c.cdiFolder != "" && c.pluginsDir == "" {
		return nil, errors.New("--cdi is for what is in --plugins-dir: give it as well")
	}
	if c.nodeSelector == "" {
		return nil, nil
	}
	parsed, err := metav1.ParseToLabelSelector(c.nodeSelector)
	if err != nil {
		return nil, fmt.Errorf("parse --node-selector %q: %w: use =, !=, in, notin, or a label alone", c.nodeSelector, err)
	}
	term := corev1.NodeSelectorTerm{}
	for _, key := range slices.Sorted(maps.Keys(parsed.MatchLabels)) {
		term.MatchExpressions = append(term.MatchExpressions,
			corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{parsed.MatchLabels[key]}})
	}
	for _, r := range parsed.MatchExpressions {
		term.MatchExpressions = append(term.MatchExpressions,
			corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values})
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}, nil
}

// readFiles reads what is not in the cluster: what drivers have returned, and how long
// they have taken.
func (c *command) readFiles(ctx context.Context, w *world) (took map[string]histogram, err error) {
	if c.pluginsDir != "" {
		if err := w.readCheckpoint(c.pluginsDir); err != nil {
			return nil, err
		}
	}
	if c.cdiFolder != "" {
		if w.cdi, err = readCDIDevices(c.cdiFolder); err != nil {
			return nil, err
		}
	}
	if c.metricsURL == "" {
		return nil, nil
	}
	return readLatencies(ctx, c.metricsURL)
}
