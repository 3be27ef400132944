package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice"
	"github.com/kwok-dra/kwok-dra/internal/resourceslice/features"
)

// defaultVersion is the release that commands assume without an API server.
const defaultVersion = "1.36"

// Server chooses the release of Kubernetes, which decides which fields are kept.
type Server struct {
	Version string
	gates   gates
}

// AddTo adds the flags.
func (s *Server) AddTo(command *cobra.Command) {
	command.Flags().StringVar(&s.Version, "server-version", "", "release of Kubernetes, such as 1.35, whose fields are kept; default: that of the cluster, or "+defaultVersion)
	command.Flags().Var(&s.gates, "feature-gates", "feature gates of --server-version that differ from their defaults: NAME=true,...")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("server-version", cobra.FixedCompletions(preview.Releases(), cobra.ShellCompDirectiveNoFileComp))
}

// Preview works out what a sidecar would write to the release that is given, or else
// to the API server of the client, or else to the default. It prints which fields are
// dropped.
func (s *Server) Preview(ctx context.Context, streams cli.Streams, client kubernetes.Interface, of preview.Cluster) (*preview.Preview, error) {
	version, name := s.Version, "the API server"
	if version == "" && (client == nil || len(s.gates) > 0) {
		version = defaultVersion
	}
	var server features.Server
	if version == "" {
		server = resourceslice.NewProber(client)
	} else {
		release, err := preview.NewRelease(version, s.gates)
		if err != nil {
			return nil, err
		}
		server, name = release, "Kubernetes "+version
	}
	previewed, err := preview.New(ctx, server, of)
	if err != nil {
		return nil, err
	}
	for _, dropped := range previewed.Dropped {
		consequence := "feature gate " + dropped.Field.Gate
		if dropped.Field.Without != "" {
			consequence = "its pool is not published, since " + dropped.Field.Without + "; " + consequence
		}
		streams.Tell("template %s: %s drops %s (%s)\n", dropped.Source, name, dropped.Field.Name, consequence)
	}
	return previewed, nil
}

// gates are feature gates by name.
type gates map[string]bool

// Set implements pflag.Value.
func (g *gates) Set(text string) error {
	if *g == nil {
		*g = gates{}
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q: must be NAME=true or NAME=false", part)
		}
		(*g)[name] = on
	}
	return nil
}

// String implements pflag.Value.
func (g *gates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*g)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, (*g)[name]))
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (g *gates) Type() string { return "gates" }
