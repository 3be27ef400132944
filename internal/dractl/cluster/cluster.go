package cluster

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
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

// WriteKubeconfig writes a kubeconfig file with the chosen context alone, which needs no other
// file.
func (f *Flags) WriteKubeconfig(path string) error {
	if _, err := f.RESTConfig(); err != nil {
		return err
	}
	known, err := f.flags().ClientConfig().RawConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if f.Context != "" {
		known.CurrentContext = f.Context
	}
	if err := errors.Join(clientcmdapi.MinifyConfig(&known), clientcmdapi.FlattenConfig(&known)); err != nil {
		return fmt.Errorf("read kubeconfig: %w: set KUBECONFIG or give --kubeconfig FILE", err)
	}
	if err := clientcmd.WriteToFile(known, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Pointers are those to the items of a list.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
