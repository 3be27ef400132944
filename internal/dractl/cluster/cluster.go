package cluster

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/util/kubeconfig"
)

// Flags are kubectl's flags that choose the cluster.
type Flags struct {
	Kubeconfig, Context, Namespace string

	kubectl *reading.Flags
}

// AddTo adds the flags to a command and all below it.
func (f *Flags) AddTo(command *cobra.Command) { f.flags().AddTo(command) }

func (f *Flags) flags() *reading.Flags {
	if f.kubectl == nil {
		f.kubectl = reading.NewFlagsInto(&f.Kubeconfig, &f.Context, &f.Namespace)
	}
	return f.kubectl
}

// Configured reports whether the user names a cluster, rightly or wrongly.
func (f *Flags) Configured() bool { return f.flags().Configured() }

// AnyGiven reports whether a flag chooses a cluster or a user.
func (f *Flags) AnyGiven() bool { return f.flags().AnyGiven() }

// RESTConfig is the configuration of clients of the API server.
func (f *Flags) RESTConfig() (*rest.Config, error) { return f.flags().RESTConfig() }

// Client makes a client of all groups.
func (f *Flags) Client() (kubernetes.Interface, error) {
	config, err := f.flags().ProtobufConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// DefaultNamespace is the namespace that is given, or that of the context.
func (f *Flags) DefaultNamespace() (string, error) { return f.flags().Namespace(false) }

// WriteKubeconfig writes a kubeconfig file that leads where RESTConfig does, and returns the address of the API server.
func (f *Flags) WriteKubeconfig(path string) (server string, err error) {
	config, err := f.RESTConfig()
	if err != nil {
		return "", err
	}
	namespace, err := f.DefaultNamespace()
	if err != nil {
		return "", err
	}
	return config.Host, kubeconfig.Write(path, config, namespace)
}

// Pointers are those to the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
