package cluster

import (
	"github.com/spf13/cobra"
)

// CompleteNodes completes the names of nodes.
func (f *Flags) CompleteNodes(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeFirst("nodes", command, arguments, typed)
}

// CompleteClaims completes the names of claims in the namespace.
func (f *Flags) CompleteClaims(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeFirst("resourceclaims", command, arguments, typed)
}

// CompletePods completes the names of Pods in the namespace.
func (f *Flags) CompletePods(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeFirst("pods", command, arguments, typed)
}

// completeFirst completes the first argument, or the value of a flag, with the names of a resource.
func (f *Flags) completeFirst(resource string, command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.flags().CompleteNames(resource)(command, arguments, typed)
}
