package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// installations are two kwok-dra in one cluster, each with nodes of its own. One of them
// owns what belongs to no node: a pool that nodes share, the status of a template that both
// read, or a DeviceClass. The other one comes later. One of them may be of another version.
type installations struct {
	// owns is what the first one owns.
	owns belonging
	// both says that both are told of it.
	both bool
	// versions are those of the two.
	versions [2]version
	// haveClaims says that Pods of both use claims. Earlier versions withdraw what others have prepared.
	haveClaims bool
	// byAnnotation says that they select their nodes by annotations, so that each lists all nodes, and not by labels.
	byAnnotation bool
	// isTaken says that a version before records is there, which takes what it does not want from the
	// other one, or has it taken: whoever wants it makes it anew.
	isTaken bool
	// retirements is how often the second one may retire the pool of a first one before records, which
	// isFirstOlder says: once each time that it starts.
	retirements  int
	isFirstOlder bool
	// owned is what belonged to no node while the first one was alone.
	owned map[string]string
	// wanted is the template of the shared pool.
	wanted poolTemplate
	seen   *witness
}

// belonging is what belongs to no node.
type belonging string

const (
	sharedPool     belonging = "a shared pool"
	templateStatus belonging = "the status of a template"
	deviceClass    belonging = "a DeviceClass"
)

func newInstallations(random *rand.Rand) feature {
	owns, both := pick(random, sharedPool, templateStatus, deviceClass), random.IntN(2) == 0
	f := &installations{
		owns: owns,
		both: both,
		versions: pick(random, [2]version{}, [2]version{first: beforeRecords}, [2]version{second: beforeRecords},
			[2]version{first: firstRecords}, [2]version{second: firstRecords}),
		wanted: poolTemplate{name: "mesh", driver: fabricDriver, kinds: []string{"shared"}, device: "port", count: 3, revision: 1, shared: true},
	}
	f.haveClaims = f.versions == [2]version{}
	f.byAnnotation = f.haveClaims && random.IntN(2) == 0
	return f
}

// String says what they have in common, and which one is of another version.
func (f *installations) String() string {
	text := string(f.owns)
	if f.both {
		text += ", of which both are told"
	}
	if f.byAnnotation {
		text += ", selected by annotations"
	}
	for installation, of := range f.versions {
		if of != tested {
			text += fmt.Sprintf(", %s is %s", []string{first: "the first", second: "the second"}[installation], of.name)
		}
	}
	return text
}

// The places of the two installations.
const (
	first  = 0
	second = 1
)

// isContested reports whether nobody may have what belongs to no node: a version before records
// that is not told of it takes it for its own and deletes it, and the other one makes it anew less
// and less often.
func (f *installations) isContested() bool {
	return f.seen != nil && f.isTaken && f.versions[second] == beforeRecords
}

// selectedBy is the label of the nodes of an installation.
func selectedBy(installation int) string { return fmt.Sprint("installation-", installation) }

// ownPools are the pools that an installation has on its nodes.
func ownPools() templates {
	return templates{"gpu": {name: "gpu", driver: gpuDriver, kinds: []string{"shared"}, device: "gpu", count: 2, revision: 1}}
}

// startInstallation starts a sidecar that acts for the nodes of an installation.
func (f *installations) startInstallation(ctx context.Context, s *site, installation int) error {
	all, told := ownPools(), installation == first || f.both
	if f.owns == sharedPool && told {
		all[f.wanted.name] = f.wanted
	}
	file, err := s.writeConfiguration(all)
	if err != nil {
		return err
	}
	option := "--manage-nodes-with-label-selector"
	if f.byAnnotation {
		option = "--manage-nodes-with-annotation-selector"
	}
	arguments := []string{
		"--config", file, option, chosenKey + "=" + selectedBy(installation),
		"--leader-elect-resource-namespace", electionNamespace, "--leader-elect-resource-name", selectedBy(installation),
	}
	if f.owns == templateStatus {
		arguments = append(arguments, "--enable-crds")
	}
	if f.owns == deviceClass {
		of := namespace
		if !told {
			of = metav1.NamespaceDefault
		}
		arguments = append(arguments, "--dra-kwok-configmap", of+"/"+classesConfigMap)
	}
	if installation == second {
		f.retirements++
	}
	return s.startVersion(ctx, installation, f.versions[installation], arguments...)
}

// build starts the first installation, with a node less than the second one gets: what
// they say of all their nodes differs.
func (f *installations) build(ctx context.Context, s *site) error {
	if err := f.prepareVersions(s); err != nil {
		return err
	}
	for installation, count := range []int{first: 1, second: 2} {
		for i := range count {
			name := fmt.Sprintf("%s-node-%d", selectedBy(installation), i)
			labels := map[string]string{kindLabel: "shared", chosenKey: selectedBy(installation), "kubernetes.io/hostname": name}
			if err := s.addNode(ctx, name, labels); err != nil {
				return err
			}
			annotate := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, chosenKey, selectedBy(installation))
			if err := persist(ctx, func(ctx context.Context) error { return s.patchNode(ctx, name, annotate) }); err != nil {
				return err
			}
		}
		if !f.haveClaims {
			continue
		}
		if err := s.allocateOfInstallation(ctx, installation); err != nil {
			return err
		}
	}
	if f.owns == templateStatus {
		if _, err := s.applyObject(ctx, kindTemplate, strings.Trim(disksOf("shared").yaml(), "-\n")); err != nil {
			return err
		}
	}
	if f.owns == deviceClass {
		if err := s.addMappings(ctx); err != nil {
			return err
		}
	}
	return f.startInstallation(ctx, s, first)
}

// prepareVersions builds the other version. Where it cannot be had, both are the one that is tested.
func (f *installations) prepareVersions(s *site) error {
	for i, v := range f.versions {
		if v == tested {
			continue
		}
		switch _, err := v.binary(); {
		case errors.Is(err, errNoHistory):
			s.run.log("seed %d: no installation is %s: %v %s", s.run.result.seed, v.name, err, v.commit)
			f.versions[i] = tested
		case err != nil:
			return err
		}
	}
	f.isFirstOlder = f.versions[first] == beforeRecords
	f.isTaken = !f.both && f.owns != templateStatus && slices.Contains(f.versions[:], beforeRecords)
	return nil
}

// classesConfigMap is the ConfigMap of Karpenter's driver, each of which has a DeviceClass be
// made.
const classesConfigMap = "dra-kwok-configmap"

// mappings are of devices for no node.
const mappings = `
driver: %s.example.com
mappings:
- name: none
  nodeSelector: {matchLabels: {kind: ` + nowhere + `}}
  resourceSlice: {devices: [{name: none, count: 1, attributes: {memory: 80Gi}}]}
`

// addMappings adds two of these ConfigMaps, and lets sidecars read them.
func (s *site) addMappings(ctx context.Context) error {
	for _, of := range []string{namespace, metav1.NamespaceDefault} {
		configMaps := s.client.CoreV1().ConfigMaps(of)
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: classesConfigMap}, Data: map[string]string{"config.yaml": fmt.Sprintf(mappings, "of-"+of)}}
		if _, err := configMaps.Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ConfigMap: %w", err)
		}
		s.ends = append(s.ends, func() { _ = configMaps.Delete(context.WithoutCancel(ctx), classesConfigMap, metav1.DeleteOptions{}) })
	}
	_, err := s.cluster.Kubectl(ctx, "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "karpenter", "rbac"))
	return err
}

// disksOf is a template that is an object, for the nodes of a kind.
func disksOf(kind string) *poolTemplate {
	t := disks
	t.kinds = []string{kind}
	return &t
}

// disturb has the second installation come, and one of both start again, while calls fail
// at times. One that is of another version is upgraded by that.
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
		schedules := []*schedule{s.newSchedule(first), s.newSchedule(second)}
		for i, v := range f.versions {
			if v != tested { // what it makes of faults is no matter
				schedules[i] = nil
			}
		}
		s.disturb(schedules)
		defer s.disturb(nil)
	}
	if err := f.startInstallation(ctx, s, second); err != nil {
		return err
	}
	again := s.random.IntN(2)
	if err := pick(s.random, (*sidecar.Process).Stop, (*sidecar.Process).Kill)(s.all[again].process); err != nil {
		return err
	}
	f.versions[again] = tested
	return f.startInstallation(ctx, s, again)
}

// ownedByNoNode are the slices and the DeviceClasses that no node has: which ones they are, and
// how often somebody wanted something else.
func (s *site) ownedByNoNode(ctx context.Context) (map[string]string, error) {
	list, err := s.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list slices: %w", err)
	}
	owned := map[string]string{}
	for i := range list.Items {
		if slice := &list.Items[i]; slice.Spec.NodeName == nil {
			owned["slice "+slice.Name] = fmt.Sprint(slice.UID, slice.Generation)
		}
	}
	classes, err := s.client.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{LabelSelector: managedBy})
	if err != nil {
		return nil, fmt.Errorf("list DeviceClasses: %w", err)
	}
	for i := range classes.Items {
		class := &classes.Items[i]
		owned["DeviceClass "+class.Name] = fmt.Sprint(class.UID, class.Generation)
	}
	return owned, nil
}

func (f *installations) judge(ctx context.Context, s *site) verdict {
	there, err := s.list(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	owned, err := s.ownedByNoNode(ctx)
	if err != nil {
		return verdict{wrong: []string{err.Error()}}
	}
	v := verdict{wrong: append(f.wrongPools(s, there), f.wrongClaims(s, there)...), rest: plan.OthersDelay}
	if want := f.owns != templateStatus; want != (len(owned) > 0) && !f.isContested() {
		v.wrong = append(v.wrong, fmt.Sprintf("owner: nobody owns %s: %v", f.owns, owned))
	}
	if f.seen == nil {
		return v
	}
	for name, was := range f.owned { // the other one may own something too
		if owned[name] != was && !f.isTaken {
			v.final = errors.Join(v.final, fmt.Errorf("owner: %s: %s is %q, and was %q before the other installation came", f, name, owned[name], was))
		}
	}
	shared := poolKey{driver: f.wanted.driver, name: f.wanted.poolName()}
	lost, err := f.seen.unjustified(ctx, s.world, map[poolKey]bool{shared: f.isTaken})
	if len(lost) > 0 {
		v.final = errors.Join(v.final, errors.New(lost[0]))
	} else if err != nil {
		v.wrong = append(v.wrong, err.Error())
	}
	if retired := f.seen.lossesOf(shared); f.isFirstOlder && retired > f.retirements {
		v.final = errors.Join(v.final, fmt.Errorf("owner: the pool of v0.2.0 was retired %d times, want at most %d", retired, f.retirements))
	}
	return v
}

// wrongPools has the oracle look at the nodes of each installation that runs.
func (f *installations) wrongPools(s *site, there found) []string {
	var wrong []string
	for installation := range s.running() {
		view := &state{inForce: inForce{templates: f.expectedOf(installation), selection: selection{by: "labels"}}, found: there}
		mine := selectedBy(installation)
		view.nodes = map[string]*corev1.Node{}
		for name, node := range there.nodes {
			if node = node.DeepCopy(); node.Labels[chosenKey] == mine {
				node.Labels[chosenKey] = chosenValue
				view.nodes[name] = node
			}
		}
		ownsShared := f.ownsShared(installation)
		view.slices = slices.DeleteFunc(slices.Clone(there.slices), func(slice resourcev1.ResourceSlice) bool {
			key := poolOf(&slice)
			return key.node == "" && !ownsShared || key.node != "" && view.nodes[key.node] == nil
		})
		wrong = append(wrong, view.wrongPools()...)
	}
	return wrong
}

// ownsShared reports whether an installation has the pool that nodes share for sure.
func (f *installations) ownsShared(installation int) bool {
	return installation == first && !f.isContested()
}

// expectedOf are the templates whose pools an installation has.
func (f *installations) expectedOf(installation int) templates {
	all := ownPools()
	// The version before records refuses a template whose status a later one has written.
	isRefused := installation == second && f.versions[second] == beforeRecords
	if f.owns == templateStatus && !isRefused {
		all[disks.name] = *disksOf("shared")
	}
	if f.owns == sharedPool && f.ownsShared(installation) {
		all[f.wanted.name] = f.wanted
	}
	return all
}
