package reading

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

// completionTimeout is how long a completion waits for the API server.
const completionTimeout = 3 * time.Second

// completed are the resources of which names are completed.
var completed = map[string]struct {
	resource     schema.GroupVersionResource
	isNamespaced bool
}{
	"namespaces":     {corev1.SchemeGroupVersion.WithResource("namespaces"), false},
	"nodes":          {corev1.SchemeGroupVersion.WithResource("nodes"), false},
	"pods":           {corev1.SchemeGroupVersion.WithResource("pods"), true},
	"deviceclasses":  {resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), false},
	"resourceclaims": {resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), true},
}

// CompleteNames completes arguments with the names of a resource: namespaces, nodes, pods, deviceclasses or
// resourceclaims. It leaves out names that are given already, and reads only metadata.
func (f *Flags) CompleteNames(resource string) cobra.CompletionFunc {
	return func(command *cobra.Command, given []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := f.listNames(command.Context(), resource)
		if err != nil {
			return failCompletion(err)
		}
		return matchTyped(slices.DeleteFunc(names, func(name string) bool { return slices.Contains(given, name) }), typed)
	}
}

func (f *Flags) listNames(ctx context.Context, resource string) ([]string, error) {
	known := completed[resource]
	namespace, err := f.Namespace(!known.isNamespaced)
	if err != nil {
		return nil, err
	}
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	list, err := client.Resource(known.resource).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

func (f *Flags) completeContexts(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	known, err := f.ClientConfig().RawConfig()
	if err != nil {
		return failCompletion(err)
	}
	return matchTyped(slices.Collect(maps.Keys(known.Contexts)), typed)
}

// matchTyped returns the names that begin with what is typed, or with what is typed after the last comma.
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
