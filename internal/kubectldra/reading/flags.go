package reading

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// Flags are kubectl's flags that choose the cluster, the user and the namespace.
type Flags struct {
	config *genericclioptions.ConfigFlags
	// client reaches the cluster, whatever the flags choose. It is nil outside of tests.
	client groupclient.Interface
}

// NewFlags makes flags that are not set.
func NewFlags() *Flags { return NewFlagsInto(new(string), new(string), new(string)) }

// NewFlagsInto makes flags that have these values, and whose values are found there once they are parsed.
func NewFlagsInto(kubeconfig, kubeContext, namespace *string) *Flags {
	config := genericclioptions.NewConfigFlags(true)
	config.KubeConfig, config.Context, config.Namespace = kubeconfig, kubeContext, namespace
	config.CacheDir = nil // nothing asks which resources the API server has
	config.WrapConfigFn = func(found *rest.Config) *rest.Config {
		found.QPS = -1
		return found
	}
	return &Flags{config: config}
}

// NewFlagsOf makes flags of the cluster that a client reaches, with a default for the namespace. They read no files.
func NewFlagsOf(client groupclient.Interface, namespace string) *Flags {
	f := NewFlagsInto(new(os.DevNull), new(string), &namespace)
	f.client = client
	return f
}

// AddTo adds the flags to a command and all below it.
func (f *Flags) AddTo(command *cobra.Command) {
	f.config.AddFlags(command.PersistentFlags())
	// They fail only for flags that do not exist.
	_ = command.RegisterFlagCompletionFunc("context", f.completeContexts)
	_ = command.RegisterFlagCompletionFunc("namespace", f.CompleteNames("namespaces"))
	listInOptions(command)
}

// globalFlags is where cobra's template shows the flags that all commands have.
var globalFlags = regexp.MustCompile(`(?s)\{\{if \.HasAvailableInheritedFlags\}\}.*?\{\{end\}\}`)

// listInOptions leaves the flags that all commands have out of the help, and shows them in a command of their own,
// as kubectl does.
func listInOptions(root *cobra.Command) {
	template := strings.Replace(root.UsageTemplate(), "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	template = globalFlags.ReplaceAllLiteralString(template, "")
	root.SetUsageTemplate(strings.TrimRight(template, "\n") + "\n\nUse \"{{.Root.CommandPath}} options\" for the options of all commands, such as --context and --namespace.\n")
	root.AddCommand(&cobra.Command{
		Use:    "options",
		Short:  "Show the options that all commands have.",
		Args:   cobra.NoArgs,
		Hidden: true,

		Example: "  " + root.CommandPath() + " options",
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(command.OutOrStdout(), "These options can be given to any command:\n\n%s", root.PersistentFlags().FlagUsagesWrapped(usageWidth))
			return err
		},
	})
}

// usageWidth is the width of a list of options.
const usageWidth = 100

// AddAllNamespaces adds -A to a command.
func AddAllNamespaces(command *cobra.Command, all *bool) {
	command.Flags().BoolVarP(all, "all-namespaces", "A", false, "If present, show all namespaces, whatever --namespace and the context say.")
}

// Namespace returns the namespace that is given, or that of the context, or "" for all of them.
func (f *Flags) Namespace(all bool) (string, error) {
	if all {
		return metav1.NamespaceAll, nil
	}
	namespace, _, err := f.ClientConfig().Namespace()
	if err != nil {
		return "", fmt.Errorf("find the namespace of the context: %w", err)
	}
	return namespace, nil
}

// ClientConfig is what the flags and the kubeconfig files say.
func (f *Flags) ClientConfig() clientcmd.ClientConfig { return f.config.ToRawKubeConfigLoader() }

// Configured reports whether the user names a cluster, rightly or wrongly. Like kubectl, ClientConfig is that of a
// server on this machine otherwise, which is never meant.
func (f *Flags) Configured() bool {
	files, ok := f.ClientConfig().ConfigAccess().(clientcmd.ClientConfigLoader)
	if !ok || *f.config.APIServer != "" {
		return true
	}
	_, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(files, &clientcmd.ConfigOverrides{
		CurrentContext: *f.config.Context, Context: clientcmdapi.Context{Cluster: *f.config.ClusterName},
	}).ClientConfig()
	return !clientcmd.IsEmptyConfig(err)
}

// AnyGiven reports whether a flag chooses a cluster or a user.
func (f *Flags) AnyGiven() bool {
	c := f.config
	return *c.KubeConfig+*c.Context+*c.APIServer+*c.ClusterName+*c.AuthInfoName+*c.BearerToken+*c.Impersonate != ""
}

// RESTConfig is the configuration of clients of the API server.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	if !f.Configured() {
		files := strings.Join(f.ClientConfig().ConfigAccess().GetLoadingPrecedence(), ", ")
		return nil, fmt.Errorf("find the API server: %s has no cluster: set KUBECONFIG or give --kubeconfig FILE", files)
	}
	found, err := f.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w: correct --kubeconfig or --context", err)
	}
	return found, nil
}

// ProtobufConfig is the configuration of clients that read protobuf, which halves the time for large clusters.
func (f *Flags) ProtobufConfig() (*rest.Config, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config, nil
}

// Client makes a client of what the plugin reads.
func (f *Flags) Client() (groupclient.Interface, error) {
	if f.client != nil {
		return f.client, nil
	}
	config, err := f.ProtobufConfig()
	if err != nil {
		return nil, err
	}
	return groupclient.NewForConfig(config)
}

// NewReader makes a Reader of the cluster.
func (f *Flags) NewReader() (*Reader, error) {
	client, err := f.Client()
	if err != nil {
		return nil, err
	}
	return NewReaderOf(client), nil
}
