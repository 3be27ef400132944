package reading

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags are kubectl's flags that choose the cluster, the user and the namespace.
type Flags struct {
	config *genericclioptions.ConfigFlags
}

// NewFlags makes flags that are not set.
func NewFlags() *Flags {
	config := genericclioptions.NewConfigFlags(true)
	config.CacheDir = nil // nothing asks which resources the API server has
	config.WrapConfigFn = func(found *rest.Config) *rest.Config {
		found.QPS = -1
		return found
	}
	return &Flags{config: config}
}

// AddTo adds the flags to a command and all below it.
func (f *Flags) AddTo(command *cobra.Command) {
	f.config.AddFlags(command.PersistentFlags())
	// They fail only for flags that do not exist.
	_ = command.RegisterFlagCompletionFunc("context", f.completeContexts)
	_ = command.RegisterFlagCompletionFunc("namespace", f.CompleteNames("namespaces"))
}

// AddAllNamespaces adds -A to a command.
func AddAllNamespaces(command *cobra.Command, all *bool) {
	command.Flags().BoolVarP(all, "all-namespaces", "A", false, "If present, show all namespaces, whatever --namespace and the context say.")
}

// Namespace returns the namespace that is given, or that of the context, or "" for all of them.
func (f *Flags) Namespace(all bool) (string, error) {
	if all {
		return metav1.NamespaceAll, nil
	}
	namespace, _, err := f.config.ToRawKubeConfigLoader().Namespace()
	if err != nil && !clientcmd.IsEmptyConfig(err) {
		return "", fmt.Errorf("find the namespace of the context: %w", err)
	}
	return namespace, nil
}

// RESTConfig is the configuration of clients of the API server.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	found, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w: set KUBECONFIG or give --kubeconfig FILE", err)
	}
	return found, nil
}

// NewReader makes a Reader of the cluster.
func (f *Flags) NewReader() (*Reader, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	// Protobuf halves the time for large clusters.
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return NewReaderOf(client), nil
}
