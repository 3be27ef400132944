// Package snapshot reads what it takes to explain or to place Pods, and no more. In goes a Reader, out comes a World of the
// simulator. It never writes.
package snapshot

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/reading"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Snapshot is what is read to explain or to place Pods.
type Snapshot struct {
	Reader *reading.Reader
	World  simulator.World
	// Namespace is that of the Pods, or empty for all.
	Namespace string

	hasOwnClaims bool
}

// OthersClaims are the claims of other namespaces, which may have the devices of a node.
const OthersClaims = "resourceclaims of other namespaces"

// Unread returns the resources that could not be read.
func (s *Snapshot) Unread() []string {
	var names []string
	for _, unseen := range s.Reader.Unseen() {
		name := unseen.Resource
		if name == "resourceclaims" && s.hasOwnClaims {
			name = OthersClaims
		}
		names = append(names, name)
	}
	return names
}

// ReadForScheduling reads all that decides where Pods of the namespace get devices. It reads slices last, since
// what asks for devices says what to keep of them. More may ask than the cluster has.
func (s *Snapshot) ReadForScheduling(ctx context.Context, more *simulator.World) error {
	s.World.IsLive = true
	err := reading.InParallel(
		func() (err error) { s.World.Nodes, err = s.Reader.Nodes(ctx); return err },
		func() (err error) { s.World.Classes, err = s.Reader.Classes(ctx); return err },
		func() error { return s.readClaims(ctx) },
		func() (err error) {
			s.World.ClaimTemplates, err = s.Reader.ClaimTemplates(ctx, s.Namespace)
			return err
		},
		func() (err error) { s.World.TaintRules, err = s.Reader.TaintRules(ctx); return err },
	)
	if err != nil {
		return err
	}
	looksAt := &interest{keys: map[string]bool{}}
	looksAt.addWorld(&s.World)
	looksAt.addWorld(more)
	s.World.Slices, err = s.Reader.SlicesWith(ctx, looksAt.keepsAttribute, looksAt.capacity)
	return err
}

// readClaims reads all claims, or those of the namespace if the user may not list all.
func (s *Snapshot) readClaims(ctx context.Context) error {
	var err error
	s.World.Claims, err = s.Reader.Claims(ctx, metav1.NamespaceAll)
	if err != nil || s.World.Claims != nil || s.Namespace == "" {
		return err
	}
	s.World.Claims, err = s.Reader.Claims(ctx, s.Namespace)
	s.hasOwnClaims = !slices.ContainsFunc(s.Reader.Unseen(), func(unseen reading.Unseen) bool {
		return unseen.Resource == "resourceclaims" && unseen.Namespace == s.Namespace
	})
	return err
}

// ReadForNodes reads what decides whether Pods on nodes start.
func (s *Snapshot) ReadForNodes(ctx context.Context, nodes []string) error {
	s.World.IsLive = true
	return reading.InParallel(
		func() (err error) { s.World.Claims, err = s.Reader.Claims(ctx, s.Namespace); return err },
		func() error { return s.readNodes(ctx, nodes) },
		func() error { return s.readSlicesOf(ctx, nodes) },
	)
}

// many is the number of nodes from which all are listed at once.
const many = 20

func (s *Snapshot) readNodes(ctx context.Context, names []string) (err error) {
	if len(names) >= many {
		s.World.Nodes, err = s.Reader.Nodes(ctx)
		return err
	}
	for _, name := range names {
		node, err := s.Reader.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return s.Reader.NoteUnseen("get", "nodes", "", err)
		}
		s.World.Nodes = append(s.World.Nodes, node)
	}
	return nil
}

// readSlicesOf reads the slices of nodes, and those of no node in particular.
func (s *Snapshot) readSlicesOf(ctx context.Context, nodes []string) (err error) {
	if len(nodes) >= many {
		s.World.Slices, err = s.Reader.Slices(ctx)
		return err
	}
	for _, node := range append(slices.Clone(nodes), "") {
		found, err := s.Reader.SlicesOf(ctx, node)
		if err != nil {
			return err
		}
		s.World.Slices = append(s.World.Slices, found...)
	}
	return nil
}

// ReadPods reads the Pods that are bound to nodes, which take resources of these and may keep others away; and the namespaces, if
// Pods, or those asked about, select some.
func (s *Snapshot) ReadPods(ctx context.Context, asked []*corev1.Pod) error {
	pods, err := s.Reader.Pods(ctx, metav1.NamespaceAll, "")
	s.World.LacksPods = pods == nil
	s.World.Pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" || facts.IsTerminal(pod) })
	if err != nil || !slices.ContainsFunc(slices.Concat(asked, s.World.Pods), simulator.SelectsNamespaces) {
		return err
	}
	namespaces, err := s.Reader.Namespaces(ctx)
	s.World.Namespaces = append(s.World.Namespaces, namespaces...)
	return err
}
