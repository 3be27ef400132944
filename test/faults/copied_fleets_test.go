package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// copies is a fleet of real nodes with slices of real drivers, of which some are odd. It is
// copied, and goes; of the copy each pool and each node is as it was, or was said to be
// left out.
type copies struct {
	odd []oddity
	// nodes and pools are the original.
	nodes map[string]bool
	pools map[poolKey]string
	// said is what the copying program has said.
	said   string
	copied bool
}

// oddity is something that fleets have at times.
type oddity struct {
	name   string
	slices []resourcev1.ResourceSlice
	// node is one that nothing else reaches, if there is any.
	node string
}

// ordinary is a node with devices, lonely one with a driver that has none, and reached one
// that a shared pool is for.
const (
	ordinary = "copied-0"
	lonely   = "copied-1"
	reached  = "copied-2"
)

func oddities() []oddity {
	shared := foreignSlice("copied-shared", "fabric.example.org", "", "mesh", "port-0")
	shared.Spec.NodeName, shared.Spec.NodeSelector = nil, selectNode(reached)
	return []oddity{
		{"a slice without devices", []resourcev1.ResourceSlice{foreignSlice("copied-empty", "gpu.example.org", lonely, lonely)}, lonely},
		{"a slice whose Node is gone", []resourcev1.ResourceSlice{foreignSlice("copied-stale", "gpu.example.org", "copied-gone", "copied-gone", "gpu-0")}, ""},
		{"a node that only a shared pool reaches", []resourcev1.ResourceSlice{shared}, reached},
		{"drivers that differ in case", []resourcev1.ResourceSlice{foreignSlice("copied-case", "GPU.example.org", ordinary, ordinary, "gpu-9")}, ""},
	}
}

func selectNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}
}

func foreignSlice(name, driver, node, pool string, devices ...string) resourcev1.ResourceSlice {
	slice := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
	}}
	for i, device := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, ownDevice(device, int64(i)))
	}
	return slice
}

func newCopies(random *rand.Rand) feature {
	all := oddities()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return &copies{odd: all[:1+random.IntN(2)]}
}

// build makes the fleet. Nobody manages its nodes.
func (f *copies) build(ctx context.Context, s *site) error {
	names := []string{ordinary}
	for _, odd := range f.odd {
		if odd.node != "" {
			names = append(names, odd.node)
		}
	}
	for _, name := range names {
		if err := s.addNode(ctx, name, map[string]string{"kubernetes.io/hostname": name}); err != nil {
			return err
		}
	}
	all := []resourcev1.ResourceSlice{foreignSlice("copied", "gpu.example.org", ordinary, ordinary, "gpu-0", "gpu-1")}
	for _, odd := range f.odd {
		all = append(all, odd.slices...)
	}
	for i := range all {
		if err := persist(ctx, func(ctx context.Context) error {
			_, err := s.client.ResourceV1().ResourceSlices().Create(ctx, &all[i], metav1.CreateOptions{})
			return err
		}); err != nil {
			return fmt.Errorf("create slice %s: %w", all[i].Name, err)
		}
	}
	return nil
}

// disturb copies the fleet, has it go, and has a sidecar play the copy.
func (f *copies) disturb(ctx context.Context, s *site) error {
	dir, err := s.makeDir()
	if err != nil {
		return err
	}
	if f.nodes, f.pools, err = s.fleet(ctx); err != nil {
		return err
	}
	recorded, err := s.cluster.Kubectl(ctx, "get", "nodes,resourceslices", "-o", "yaml")
	if err != nil {
		return err
	}
	original := filepath.Join(dir, "original.yaml")
	if err := os.WriteFile(original, []byte(recorded), 0o600); err != nil {
		return err
	}
	programs, err := sidecar.Programs()
	if err != nil {
		return err
	}
	generate := exec.CommandContext(ctx, filepath.Join(programs, "kwok-dractl"), "generate", "-f", original)
	var copied, said bytes.Buffer
	generate.Stdout, generate.Stderr = &copied, &said
	if err := generate.Run(); err != nil {
		return fmt.Errorf("copy a fleet with %s: %w: %s", f, err, said.String())
	}
	f.said = said.String()
	for line := range strings.SplitSeq(copied.String(), "\n") { // what is left out may be said in the copy itself
		if strings.HasPrefix(line, "#") {
			f.said += line + "\n"
		}
	}
	if err := errors.Join(persist(ctx, s.deleteNodes), persist(ctx, s.deleteSlices)); err != nil {
		return err
	}
	if _, err := s.cluster.KubectlInput(ctx, &copied, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("apply the copy: %w", err)
	}
	f.copied = true
	err = s.start(ctx, 0, "--config", s.timing, "--enable-crds")
	return err
}

// String says what is odd.
func (f *copies) String() string {
	var names []string
	for _, odd := range f.odd {
		names = append(names, odd.name)
	}
	return strings.Join(names, " and ")
}

// fleet is what nodes there are, and what the pools have.
func (s *site) fleet(ctx context.Context) (map[string]bool, map[poolKey]string, error) {
	there, err := s.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, pools := map[string]bool{}, map[poolKey]string{}
	for name := range there.nodes {
		nodes[name] = true
	}
	devices := map[poolKey][]string{}
	for i := range there.slices {
		key := poolOf(&there.slices[i])
		devices[key] = append(devices[key], []string{}...)
		for j := range there.slices[i].Spec.Devices {
			text, err := json.Marshal(&there.slices[i].Spec.Devices[j])
			if err != nil {
				return nil, nil, err
			}
			devices[key] = append(devices[key], string(text))
		}
	}
	for key, all := range devices {
		slices.Sort(all)
		pools[key] = strings.Join(all, "\n")
	}
	return nodes, pools, nil
}

func (f *copies) judge(ctx context.Context, s *site) verdict {
	if !f.copied {
		return verdict{}
	}
	nodes, pools, err := s.fleet(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if !nodes[name] && !strings.Contains(f.said, name) {
			wrong = append(wrong, fmt.Sprintf("copy: node %s is not copied, and nothing says so; it has %s", name, f))
		}
	}
	for key, want := range f.pools {
		if got, ok := pools[key]; (!ok && want != "" || got != want) && !strings.Contains(f.said, key.name) {
			wrong = append(wrong, fmt.Sprintf("copy: pool %+v has %q, want %q, and nothing says so; it has %s", key, got, want, f))
		}
	}
	slices.Sort(wrong)
	return verdict{wrong: wrong}
}
