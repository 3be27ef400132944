package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestSubcommand suggests the command that may be meant, with its parents.
func TestSubcommand(t *testing.T) {
	t.Parallel()
	none := func(*cobra.Command, []string) {}
	root, status := &cobra.Command{Use: Name}, &cobra.Command{Use: "status", Run: none}
	root.AddCommand(status)
	status.AddCommand(&cobra.Command{Use: "node", Run: none}, &cobra.Command{Use: "claim", Run: none})
	require.NoError(t, Subcommand(root, nil))
	require.EqualError(t, Subcommand(root, []string{"stats"}), `unknown command "stats": did you mean status?`)
	require.EqualError(t, Subcommand(status, []string{"nodes"}), `unknown command "status nodes": did you mean status node?`)
	require.EqualError(t, Subcommand(status, []string{"h100-0"}), `unknown command "status h100-0": it is one of claim, node`)
}
