package diff

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
)

// scope is what the given templates are about: their driver on the nodes that they select,
// or that the templates of their names in the cluster select so far.
type scope struct {
	templates []*devices.Template
	nodes     map[string]*corev1.Node
}

// readScope returns nil where all of kwok-dra's slices are meant: files are a part of the
// configuration, and a ConfigMap is all of it.
func (c *command) readScope(ctx context.Context, client kubernetes.Interface, given []*devices.Template, nodes []*corev1.Node) (*scope, error) {
	if c.prune || c.templates.ConfigMap != "" {
		return nil, nil
	}
	restConfig, err := c.reach.RESTConfig()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	live, err := (&fleet.Templates{}).SetInCluster(ctx, c.streams, client, objects)
	if err != nil {
		return nil, err
	}
	s := &scope{templates: slices.Clone(given), nodes: map[string]*corev1.Node{}}
	for _, t := range live.Templates {
		if slices.ContainsFunc(given, func(g *devices.Template) bool { return g.Name == t.Name }) {
			s.templates = append(s.templates, t)
		}
	}
	for _, node := range nodes {
		s.nodes[node.Name] = node
	}
	return s, nil
}

// limitToScope leaves out the changes that the templates are not about, and says how many.
func (c *command) limitToScope(s *scope, changes []change) []change {
	if s == nil {
		return changes
	}
	limited := slices.DeleteFunc(slices.Clone(changes), func(one change) bool {
		return !slices.ContainsFunc(s.templates, func(t *devices.Template) bool {
			if t.Driver != one.Driver {
				return false
			}
			if t.SharedPool() != "" || one.Node == "" {
				return t.SharedPool() == one.Pool
			}
			node := s.nodes[one.Node]
			return node != nil && t.Selects(node)
		})
	})
	if left := len(changes) - len(limited); left > 0 {
		c.streams.Tell("%d slices that these templates are not about are left out; --prune shows those that kwok-dra would delete if it had no others\n", left)
	}
	return limited
}
