// Package admin makes clients of the administrators of test clusters.
package admin

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config is the configuration of a kubeconfig, without a limit of requests. It has what
// is in the files that the kubeconfig names: client-go would read them again and again,
// also when the cluster is gone.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read files of kubeconfig %s: %w", kubeconfig, err)
	}
	config.CAFile, config.CertFile, config.KeyFile = "", "", ""
	config.QPS = -1
	return config, nil
}

// NewClient makes a client for a kubeconfig.
func NewClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}
