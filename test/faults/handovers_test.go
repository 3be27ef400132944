package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
	"github.com/kwok-dra/kwok-dra/test/internal/fleet"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// handOvers are a node that goes from one replica to the other, and back, while a driver on
// sockets has claims prepared there. Whoever has the node when a Pod ends has its claims
// unprepared, also those that the other one has had prepared.
type handOvers struct {
	// moves is how often the node goes to the other replica.
	moves int
	// again has the replica that loses the node start anew before it gets the node back.
	again bool
	// only has devices that no other node reaches. Else they may be used on any node, and it is still
	// the replica of the node that reaches the driver, not the leader.
	only    bool
	plugins string
	plugin  *file.Driver
	// over says that all Pods have ended.
	over bool

	mu sync.Mutex
	// unprepared are the names of the claims that the driver was asked to unprepare.
	unprepared map[string]bool
}

const handedNode = "handed-node"

func newHandOvers(random *rand.Rand) feature {
	return &handOvers{moves: 1 + random.IntN(3), again: random.IntN(2) == 0, only: random.IntN(2) == 0, unprepared: map[string]bool{}}
}

// String says how often the node is handed over.
func (f *handOvers) String() string {
	text := fmt.Sprint("handed over ", f.moves)
	if f.again {
		text += ", and restarts"
	}
	if !f.only {
		text += ", any node"
	}
	return text
}

// handedPod names the Pod that comes after so many moves.
func handedPod(move int) string { return fmt.Sprint("handed-", move) }

// build has the first replica have the node, and a Pod run there.
func (f *handOvers) build(ctx context.Context, s *site) (err error) {
	if f.plugins, err = s.makeDir(); err != nil {
		return err
	}
	if err := s.addNode(ctx, handedNode, nil); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: handedNode}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(40))}}
	if _, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create lease: %w", err)
	}
	for number := range 2 {
		if err := f.startReplica(ctx, s, number); err != nil {
			return err
		}
	}
	if err := f.hand(ctx, s, 0); err != nil {
		return err
	}
	f.plugin, err = s.startPlugin(ctx, f.plugins, handedNode, f.intercept, func(o *file.Options) { o.Devices = f.moves + 1 })
	if err != nil {
		return err
	}
	s.ends = append(s.ends, f.plugin.Stop)
	return f.addPod(ctx, s, 0)
}

func (f *handOvers) startReplica(ctx context.Context, s *site, number int) error {
	return s.start(ctx, number, "--config", s.timing, "--plugins-dir", f.plugins, "--shard-mode", modeLease)
}

// hand has the kwok beside a replica take the node.
func (f *handOvers) hand(ctx context.Context, s *site, number int) error {
	patch := fmt.Appendf(nil, `{"spec": {"holderIdentity": "%s_1"}}`, s.all[number].host)
	return persist(ctx, func(ctx context.Context) error {
		_, err := s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, handedNode, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// addPod has a Pod come to the node, with a device of its own.
func (f *handOvers) addPod(ctx context.Context, s *site, move int) error {
	pod := boundPod(handedPod(move), handedNode)
	pod.Labels = map[string]string{terminatesLabel: "true"}
	var nodes *corev1.NodeSelector
	if f.only {
		nodes = fleet.SelectNode(handedNode)
	}
	return s.allocateOn(ctx, nodes, pod, device{f.plugin.Name, handedNode, fmt.Sprint("file-", move)})
}

// disturb hands the node over, each time with a Pod that is prepared there, and then has all Pods
// end.
func (f *handOvers) disturb(ctx context.Context, s *site) error {
	for move := range f.moves {
		if err := f.handOver(ctx, s, move); err != nil {
			return err
		}
	}
	for _, move := range s.random.Perm(f.moves + 1) {
		if err := persist(ctx, func(ctx context.Context) error {
			return s.client.CoreV1().Pods(namespace).Delete(ctx, handedPod(move), metav1.DeleteOptions{})
		}); err != nil {
			return err
		}
		if err := s.finish(ctx, handedPod(move)); err != nil {
			return err
		}
	}
	f.over = true
	return nil
}

// handOver has the other replica take the node, and a Pod run there.
func (f *handOvers) handOver(ctx context.Context, s *site, move int) error {
	if err := f.hand(ctx, s, (move+1)%2); err != nil {
		return err
	}
	if f.again {
		if err := pick(s.random, (*sidecar.Process).Stop, (*sidecar.Process).Kill)(s.all[move%2].process); err != nil {
			return err
		}
		if err := f.startReplica(ctx, s, move%2); err != nil {
			return err
		}
	}
	if err := f.addPod(ctx, s, move+1); err != nil {
		return err
	}
	return await(ctx, "the Pod of the replica that got the node is not told to start", func(ctx context.Context) (bool, error) {
		return len(s.wrongStart(ctx, true, handedPod(move+1))) == 0, nil
	})
}

func (f *handOvers) judge(ctx context.Context, s *site) verdict {
	if !f.over {
		return verdict{wrong: s.wrongStart(ctx, true, handedPod(0))}
	}
	var v verdict
	var missed []string
	f.mu.Lock()
	defer f.mu.Unlock()
	for move := range f.moves + 1 {
		switch pod, err := s.pod(ctx, handedPod(move)); {
		case err != nil:
			v.wrong = append(v.wrong, err.Error())
		case pod != nil:
			v.wrong = append(v.wrong, "pods: pod "+pod.Name+" is still there")
		case !f.unprepared[handedPod(move)]:
			missed = append(missed, handedPod(move))
		}
	}
	if len(missed) > 0 {
		v.final = fmt.Errorf("the driver was not asked to unprepare the claims of %s, which are gone, %s", strings.Join(slices.Sorted(slices.Values(missed)), ", "), f)
	}
	return v
}

// intercept notes which claims the driver is asked to unprepare. Claims have the names of their
// Pods.
func (f *handOvers) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if asked, isUnprepare := request.(*drav1.NodeUnprepareResourcesRequest); isUnprepare {
		f.mu.Lock()
		for _, claim := range asked.Claims {
			f.unprepared[claim.Name] = true
		}
		f.mu.Unlock()
	}
	return handler(ctx, request)
}
