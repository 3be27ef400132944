// Package profiles proves that every profile makes the devices that it promises, and
// that the Pods of its sample run.
package profiles

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// profileCase is what the test of a profile knows beyond what its directory
// says.
type profileCase struct {
	// nodes is how many the sample needs. Default: 1.
	nodes int
	// since is the minor version of Kubernetes from which on nothing of the profile
	// is behind a gate. Default: 36.
	since int
	// unplaced is the Pod of the sample that the scheduler finds no node for
	// before Kubernetes 1.36: it takes what devices match the first of several
	// alternatives with allocationMode All for those that match the second.
	unplaced string
	// devices are how many a node has of each driver, where the Pods of a chart say it.
	devices map[string]int
	// check looks at more than that all Pods of the sample run.
	check func(p *profile)
}

// profileCases are those of all profiles that have one.
func profileCases() map[string]profileCase {
	cases := maps.Clone(nvidiaProfiles)
	maps.Copy(cases, otherProfiles)
	maps.Copy(cases, exampleProfiles)
	return cases
}

// profileNames are the directories of the catalogue.
func profileNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(profilePath())
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	require.NotEmpty(t, names)
	return names
}

func profilePath(elem ...string) string {
	return filepath.Join(append([]string{sidecar.Root(), "kustomize", "profiles"}, elem...)...)
}

// TestProfileDirectories has every profile complete and valid, alone and with
// all the others.
func TestProfileDirectories(t *testing.T) {
	t.Parallel()
	names := profileNames(t)
	for name := range profileCases() {
		require.Contains(t, names, name, "a case of a profile that is not there")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireComplete(t, name)
			built := buildProfiles(t, name)
			require.Equal(t, built.ofChart(), len(built.classes) == 0, "a chart has its DeviceClasses")
			for _, template := range built.templates {
				require.True(t, strings.HasPrefix(template.Name, name), "the name of template %s begins with the profile's", template.Name)
				require.True(t, template.Spec.NodeSelector != nil || template.Spec.DriverPod != nil, "template %s is not for every node", template.Name)
			}
		})
	}
	t.Run("all together", func(t *testing.T) {
		t.Parallel()
		built := buildProfiles(t, names...)
		requireNoClash(t, built)
		slices.Reverse(names)
		require.ElementsMatch(t, built.templates, buildProfiles(t, names...).templates, "in the other order")
	})
}

// requireComplete has a profile say what it is, where that comes from, and what
// to do with it.
func requireComplete(t *testing.T, name string) {
	t.Helper()
	for _, file := range []string{"kustomization.yaml", "template.yaml", "sample.yaml", "README.md"} {
		require.FileExists(t, profilePath(name, file))
	}
	readme, err := os.ReadFile(profilePath(name, "README.md"))
	require.NoError(t, err)
	text := string(readme)
	require.True(t, strings.HasPrefix(text, "# "+name+"\n"), "README.md begins with the name")
	for _, part := range []string{"\nNodes: ", "dra.kwok.x-k8s.io/profile=" + name, "\nFollows: ", "\nLeft out: ", "\nSource: ", "[sample.yaml](sample.yaml)"} {
		require.Contains(t, text, part)
	}
	catalogue, err := os.ReadFile(filepath.Join(sidecar.Root(), "docs", "reference", "profiles.md"))
	require.NoError(t, err)
	require.Contains(t, string(catalogue), fmt.Sprintf("[%s](../../kustomize/profiles/%s/README.md)", name, name))
}

// TestProfiles publishes every profile on nodes with its label and runs its
// sample, all on one cluster.
func TestProfiles(t *testing.T) {
	t.Parallel()
	h := harness.New(t, harness.AllFeatures(cluster.Options{Config: harness.FastStages(t)}))
	h.Kubectl("", "apply", "-k", filepath.Join(sidecar.Root(), "kustomize", "crd"))
	require.NoError(t, h.Cluster.AwaitDefinitions(t.Context()))
	h.Sidecar("--enable-crds")
	cases := profileCases()
	for _, name := range profileNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testProfile(&profile{H: h.On(t), profileCase: cases[name], name: name})
		})
	}
}

// profile is one that is being tested.
type profile struct {
	*harness.H
	profileCase
	name string
	*builtProfiles
	sample *sample
}

// on is the profile in a subtest.
func (p *profile) on(t *testing.T) *profile {
	on := *p
	on.H = p.On(t)
	return &on
}

func testProfile(p *profile) {
	p.builtProfiles = buildProfiles(p.T, p.name)
	p.sample = readSample(p.T, p.name)
	p.apply(profilePath(p.name))
	p.requireExtendedResources()
	for _, node := range p.nodeNames() {
		p.createProfileNode(node)
	}
	if p.ofChart() {
		p.applySample() // which has the Pods of the chart
	}
	for _, node := range p.nodeNames() {
		p.requirePublished(node)
	}
	if !p.ofChart() {
		p.applySample()
	}
	for _, pod := range p.sample.pods {
		p.Run(pod.Name, func(t *testing.T) {
			p := p.on(t)
			if pod.Name == p.unplaced {
				p.Needs(36, "the scheduler goes by the first alternative where several have allocationMode All")
			}
			p.requirePrepared(pod)
		})
	}
	if p.check != nil {
		p.check(p)
	}
}

func (p *profile) nodeNames() []string {
	return numberedNames(p.name, max(1, p.nodes))
}

func numberedNames(stem string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprint(stem, "-", i))
	}
	return names
}

// applying has profiles applied one after the other: some share DeviceClasses.
var applying sync.Mutex

// apply applies a directory as a user does.
func (p *profile) apply(directory string) {
	p.Helper()
	applying.Lock()
	defer applying.Unlock()
	_, err := p.Cluster.Kubectl(p.Context(), "apply", "-k", directory)
	require.NoError(p, err)
}

// createProfileNode creates a fake node that has nothing but the label.
func (p *profile) createProfileNode(name string) {
	p.Helper()
	node := harness.FakeNode(name, "")
	node.Labels = map[string]string{"dra.kwok.x-k8s.io/profile": p.name}
	_, err := p.Client.CoreV1().Nodes().Create(p.Context(), node, metav1.CreateOptions{})
	require.NoError(p, err)
}

// applySample applies the sample as a user does, in a namespace of its own.
func (p *profile) applySample() {
	p.Helper()
	_, err := p.Client.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name}}, metav1.CreateOptions{})
	require.NoError(p, err)
	_, err = p.Client.CoreV1().ServiceAccounts(p.name).Create(p.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(p, err)
	}
	_, err = p.Cluster.KubectlInput(p.Context(), strings.NewReader(p.sample.yaml(p.T)), "apply", "-f", "-")
	require.NoError(p, err)
}

// requireExtendedResources skips the test where the sample has extended
// resources and the server does not keep what they are.
func (p *profile) requireExtendedResources() {
	p.Helper()
	wanted := map[string]bool{}
	for _, pod := range p.sample.pods {
		for _, container := range pod.Spec.Containers {
			for name := range container.Resources.Limits {
				wanted[string(name)] = true
			}
		}
	}
	for _, class := range p.classes {
		name := class.Spec.ExtendedResourceName
		if name == nil || !wanted[*name] {
			continue
		}
		kept, err := p.Client.ResourceV1().DeviceClasses().Get(p.Context(), class.Name, metav1.GetOptions{})
		require.NoError(p, err)
		if kept.Spec.ExtendedResourceName == nil {
			p.skipBefore("the server does not keep extendedResourceName")
		}
	}
}

// requirePrepared waits until a Pod runs, with all its claims prepared, and has
// claims show it as the templates say.
func (p *profile) requirePrepared(pod *corev1.Pod) {
	p.Helper()
	running := p.Running(pod.Namespace, pod.Name)
	require.True(p, harness.IsReady(running), "the claims of Pod %s are prepared", pod.Name)
	claims := claimsOf(p.H, running)
	require.NotEmpty(p, claims, "Pod %s has claims", pod.Name)
	for _, claim := range claims {
		require.True(p, slices.ContainsFunc(claim.Status.ReservedFor, func(consumer resourcev1.ResourceClaimConsumerReference) bool {
			return consumer.UID == running.UID
		}), "claim %s is reserved for Pod %s", claim.Name, pod.Name)
		if !p.ofChart() { // whose Pods say what the drivers are called
			require.Len(p, claim.Status.Devices, p.shown(claim), "claim %s shows what the driver reports", claim.Name)
		}
	}
}

// claimsOf are all claims that a Pod uses, also those for extended resources.
func claimsOf(h *harness.H, pod *corev1.Pod) []*resourcev1.ResourceClaim {
	h.Helper()
	var claims []*resourcev1.ResourceClaim
	for _, podClaim := range pod.Spec.ResourceClaims {
		if podClaim.ResourceClaimName != nil {
			claims = append(claims, h.Claim(pod.Namespace, *podClaim.ResourceClaimName))
		}
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		claims = append(claims, h.Claim(pod.Namespace, *status.ResourceClaimName))
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		claims = append(claims, h.Claim(pod.Namespace, extended.ResourceClaimName))
	}
	return claims
}
