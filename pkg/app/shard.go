package app

import (
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// newOwner makes the Owner, which decides which nodes this replica acts for.
func newOwner(o *Options) (*shard.Owner, error) {
	if o.shardMode == shard.None {
		return shard.New(shard.Options{Mode: shard.None}), nil
	}
	host := o.Host
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find the name of this Pod: %w", err)
		}
	}
	client, err := o.electionClient()
	if err != nil {
		return nil, err
	}
	namespace := o.LeaderNamespace
	if namespace == "" {
		if namespace, _, err = o.clientConfig().Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace of this Pod, or give --leader-elect-resource-namespace: %w", err)
		}
	}
	return shard.New(shard.Options{Mode: o.shardMode, Client: client, Host: host, Namespace: namespace, Name: o.LeaderName}), nil
}

// electionClient is a client of its own, for leases only: no other request can
// hold up an election.
func (o *Options) electionClient() (kubernetes.Interface, error) {
	found, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(rest.AddUserAgent(found, "leader-election"))
}
