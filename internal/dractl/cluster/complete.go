package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/kwok-dra/kwok-dra/internal/util/natural"
)

// patience is how long a completion waits for the API server.
const patience = 3 * time.Second

// CompleteNodes completes the names of nodes.
func (f *Flags) CompleteNodes(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeResource(command, arguments, typed, corev1.SchemeGroupVersion.WithResource("nodes"), false)
}

// CompleteClaims completes the names of claims in the namespace.
func (f *Flags) CompleteClaims(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeResource(command, arguments, typed, resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), true)
}

// CompletePods completes the names of Pods in the namespace.
func (f *Flags) CompletePods(command *cobra.Command, arguments []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return f.completeResource(command, arguments, typed, corev1.SchemeGroupVersion.WithResource("pods"), true)
}

// completeResource completes the first argument, or the value of a flag, with the names of
// a resource. Only metadata is read.
func (f *Flags) completeResource(command *cobra.Command, arguments []string, typed string, resource schema.GroupVersionResource, namespaced bool,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(arguments) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	namespace := metav1.NamespaceAll
	if namespaced {
		var err error
		if namespace, err = f.DefaultNamespace(); err != nil {
			return failCompletion(err)
		}
	}
	config, err := f.RESTConfig()
	if err != nil {
		return failCompletion(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return failCompletion(err)
	}
	ctx, cancel := context.WithTimeout(command.Context(), patience)
	defer cancel()
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return failCompletion(err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return matchTyped(names, typed)
}

// matchTyped returns the names that begin with what is typed. Of a list, it is the last
// name that is completed.
func matchTyped(names []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var found []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(before+name, typed) {
			found = append(found, before+name)
		}
	}
	slices.SortFunc(found, natural.Compare)
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// failCompletion completes nothing, and writes the reason to the debug log of completions.
func failCompletion(err error) ([]cobra.Completion, cobra.ShellCompDirective) {
	cobra.CompDebugln(fmt.Sprintf("complete: %v", err), false)
	return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
}
