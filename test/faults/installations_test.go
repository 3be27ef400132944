package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// installations are two kwok-dra in one cluster, each with nodes of its own. One of them
// owns a pool that nodes share, and the status of a template that both read. The other
// one comes later, and is started in another way, as another version would be.
type installations struct {
	// both says that both read the template of the shared pool.
	both bool
	// other are the options of the one that comes later.
	other []string
	// owned are the slices of no node while the first one was alone.
	owned map[string]string
	// wanted is the template of the shared pool.
	wanted poolTemplate
	seen   *witness
}

func newInstallations(random *rand.Rand) feature {
	return &installations{
		both:   random.IntN(2) == 0,
		other:  pick(random, nil, []string{"--workers", "1"}, []string{"--kube-api-qps", "50"}),
		wanted: poolTemplate{name: "mesh", driver: fabricDriver, kinds: []string{"shared"}, device: "port", count: 3, revision: 1, shared: true},
	}
}

// The places of the two installations.
const (
	first  = 0
	second = 1
)

// selectedBy is the label of the nodes of an installation.
func selectedBy(installation int) string { return fmt.Sprint("installation-", installation) }

// ownPools are the pools that an installation has on its nodes.
func ownPools() templates {
	return templates{"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"shared"}, device: "gpu", count: 2, revision: 1}}
}

// startInstallation starts a sidecar that acts for the nodes of an installation.
func (f *installations) startInstallation(ctx context.Context, s *site, installation int) error {
	all := ownPools()
	if installation == first || f.both {
		all[f.wanted.name] = f.wanted
	}
	file, err := s.writeConfiguration(all, "")
	if err != nil {
		return err
	}
	arguments := []string{
		"--config", file, "--enable-crds", "--manage-nodes-with-label-selector", chosenKey + "=" + selectedBy(installation),
		"--leader-elect-resource-namespace", electionNamespace, "--leader-elect-resource-name", selectedBy(installation),
	}
	if installation == second {
		arguments = append(arguments, f.other...)
	}
	_, err = s.start(ctx, installation, arguments...)
	return err
}

// build starts the first installation, with a node less than the second one gets: what
// they say of all their nodes differs.
func (f *installations) build(ctx context.Context, s *site) error {
	for installation, count := range []int{first: 1, second: 2} {
		for i := range count {
			name := fmt.Sprintf("%s-node-%d", selectedBy(installation), i)
			labels := map[string]string{kindLabel: "shared", chosenKey: selectedBy(installation), "kubernetes.io/hostname": name}
			if err := s.addNode(ctx, name, labels); err != nil {
				return err
			}
		}
	}
	if _, err := s.applyObject(ctx, kindTemplate, strings.Trim(disksOf("shared").yaml(), "-\n")); err != nil {
		return err
	}
	return f.startInstallation(ctx, s, first)
}

// disksOf is a template that is an object, for the nodes of a kind.
func disksOf(kind string) *poolTemplate {
	t := disks
	t.kinds = []string{kind}
	return &t
}

// disturb has the second installation come, and one of both start again, while calls fail
// at times.
func (f *installations) disturb(ctx context.Context, s *site) error {
	var err error
	if f.owned, err = s.ownedByNoNode(ctx); err != nil {
		return err
	}
	if f.seen, err = s.witness(ctx); err != nil {
		return err
	}
	s.ends = append(s.ends, f.seen.stop)
	if s.random.IntN(2) == 0 {
		s.world.disturb([]*schedule{s.newSchedule(first), s.newSchedule(second)})
		defer s.world.disturb(nil)
	}
	if err := f.startInstallation(ctx, s, second); err != nil {
		return err
	}
	again := s.random.IntN(2)
	if err := pick(s.random, (*sidecar.Process).Stop, (*sidecar.Process).Kill)(s.all[again].process); err != nil {
		return err
	}
	return f.startInstallation(ctx, s, again)
}

// ownedByNoNode are the slices that no node has: what they say, and which ones they are.
func (s *site) ownedByNoNode(ctx context.Context) (map[string]string, error) {
	list, err := s.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	owned := map[string]string{}
	for i := range list.Items {
		if slice := &list.Items[i]; slice.Spec.NodeName == nil {
			owned[slice.Name] = fmt.Sprint(slice.UID, slice.Generation)
		}
	}
	return owned, nil
}

func (f *installations) judge(ctx context.Context, s *site) verdict {
	there, err := s.list(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	v := verdict{wrong: f.wrongPools(s, there)}
	if f.seen == nil {
		return v
	}
	owned, err := s.ownedByNoNode(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	if !maps.Equal(owned, f.owned) {
		v.final = errors.Join(v.final, fmt.Errorf("owner: the slices of no node are %v, and were %v before the other installation came", owned, f.owned))
	}
	lost, err := f.seen.unjustified(ctx, s.world, nil)
	if len(lost) > 0 {
		v.final = errors.Join(v.final, errors.New(lost[0]))
	} else if err != nil {
		v.wrong = append(v.wrong, err.Error())
	}
	return v
}

// wrongPools has the oracle look at the nodes of each installation that runs.
func (f *installations) wrongPools(s *site, there found) []string {
	var wrong []string
	for installation := range s.running() {
		view := &state{inForce: inForce{templates: ownPools(), selection: selection{by: "labels"}}, found: there}
		view.templates[disks.name] = *disksOf("shared")
		mine := selectedBy(installation)
		view.nodes = map[string]*corev1.Node{}
		for name, node := range there.nodes {
			if node = node.DeepCopy(); node.Labels[chosenKey] == mine {
				node.Labels[chosenKey] = chosenValue
				view.nodes[name] = node
			}
		}
		if installation == first {
			view.templates[f.wanted.name] = f.wanted
		}
		view.slices = slices.DeleteFunc(slices.Clone(there.slices), func(slice resourcev1.ResourceSlice) bool {
			key := poolOf(&slice)
			return key.node == "" && installation != first || key.node != "" && view.nodes[key.node] == nil
		})
		wrong = append(wrong, view.wrongPools()...)
	}
	return wrong
}
