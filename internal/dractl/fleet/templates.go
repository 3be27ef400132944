package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/check"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
)

// Templates name the files or the ConfigMap of the configuration.
type Templates struct {
	Files documents.Files
	// ConfigMap is one in the cluster, as namespace/name.
	ConfigMap string
}

// AddTo adds the flags. Files have templates and configuration, and what else the command reads.
func (t *Templates) AddTo(command *cobra.Command, besides string) {
	t.Files.AddTo(command, "templates and configuration"+besides)
	command.Flags().StringVar(&t.ConfigMap, "config-map", "", "ConfigMap in the cluster that carries templates and configuration, as NAMESPACE/NAME")
}

// Set reads the configuration, and prints its mistakes.
func (t *Templates) Set(ctx context.Context, streams cli.Streams, client kubernetes.Interface) (*config.Set, error) {
	all, err := t.Files.Read(streams)
	if err != nil {
		return nil, err
	}
	return t.SetOf(ctx, streams, client, all)
}

// SetOf is the configuration of documents, which are those of the files, and of the ConfigMap.
func (t *Templates) SetOf(ctx context.Context, streams cli.Streams, client kubernetes.Interface, all []documents.Document) (*config.Set, error) {
	if len(t.Files.Paths) == 0 && t.ConfigMap == "" {
		return nil, errors.New("there are no templates: give -f FILE or --config-map NAMESPACE/NAME")
	}
	if t.ConfigMap != "" {
		carried, err := t.readConfigMap(ctx, client)
		if err != nil {
			return nil, err
		}
		all = append(all, carried)
	}
	result := check.Documents(all)
	for _, finding := range result.Problems {
		streams.Tell("%v\n", finding)
	}
	if len(result.Problems) > 0 {
		return nil, cli.ErrNegative
	}
	if len(result.Set.Templates) == 0 {
		sources := slices.Clone(t.Files.Paths)
		if t.ConfigMap != "" {
			sources = append(sources, "ConfigMap "+t.ConfigMap)
		}
		return nil, fmt.Errorf("there is no ResourcePoolTemplate in %s", strings.Join(sources, ", "))
	}
	return result.Set, nil
}

// readConfigMap makes a document of the ConfigMap.
func (t *Templates) readConfigMap(ctx context.Context, client kubernetes.Interface) (documents.Document, error) {
	namespace, name, ok := strings.Cut(t.ConfigMap, "/")
	if !ok {
		return documents.Document{}, fmt.Errorf("parse --config-map %q: must be NAMESPACE/NAME", t.ConfigMap)
	}
	if client == nil {
		return documents.Document{}, errors.New("read --config-map: it is in the cluster, so give --from-cluster too")
	}
	read, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return documents.Document{}, fmt.Errorf("read ConfigMap %s: %w", t.ConfigMap, err)
	}
	data, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Data:       read.Data,
		BinaryData: read.BinaryData,
	})
	return documents.Document{File: "ConfigMap " + t.ConfigMap, Line: 1, Data: data}, err
}
