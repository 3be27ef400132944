package dractl

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/preview"
	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const (
	kustomize = "../../../kustomize"
	// ofEach is how many cases each profile of the catalogue has.
	ofEach = 3
	// manyDevices is from how many devices of a node on a claim asks for two at
	// most: the scheduler tries all combinations.
	manyDevices = 32
)

// profileCases makes cases with nodes of the catalogue, and claims by attributes
// that their devices have.
func profileCases(t *testing.T, seed uint64) []*scene {
	t.Helper()
	templates, err := filepath.Glob(filepath.Join(kustomize, "profiles", "*", "template.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, templates)
	var cases []*scene
	for p, template := range templates {
		profile := filepath.Base(filepath.Dir(template))
		if text, err := os.ReadFile(template); err != nil || strings.Contains(string(text), "driverPod:") {
			require.NoError(t, err)
			continue // without the Pods of a chart there are no devices
		}
		for i := range ofEach {
			d := &dice{rand.New(rand.NewPCG(seed, uint64(1000+ofEach*p+i)))}
			cases = append(cases, d.profileScene(t, profile, fmt.Sprintf("%s-%d", profile, i)))
		}
	}
	return cases
}

func (d *dice) profileScene(t *testing.T, profile, name string) *scene {
	t.Helper()
	s := &scene{name: name, classes: classesOf(t, profile)}
	s.nodes = []*corev1.Node{newNode(name, name)}
	s.nodes[0].Labels["dra.kwok.x-k8s.io/profile"] = profile
	s.slices = rendered(t, profile, s.nodes)
	var devices int
	for _, slice := range s.slices {
		devices += len(slice.Spec.Devices)
	}
	require.NotZero(t, devices, profile)
	for i := range 4 {
		claim := newClaim(name, fmt.Sprintf("%s-%d", name, i), d.profileClaim(s, devices > manyDevices))
		s.steps = append(s.steps, step{newScenePod(name, i, claim.Name), []*resourcev1.ResourceClaim{claim}})
	}
	return s
}

func classesOf(t *testing.T, profile string) []*resourcev1.DeviceClass {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kustomize, "profiles", profile, "deviceclass.yaml"))
	if os.IsNotExist(err) {
		data, err = os.ReadFile(filepath.Join(kustomize, "deviceclasses", "nvidia", "classes", "deviceclass.yaml"))
	}
	require.NoError(t, err)
	var classes []*resourcev1.DeviceClass
	for _, document := range documents.Split(profile, data) {
		class := &resourcev1.DeviceClass{}
		require.NoError(t, yaml.Unmarshal(document.Data, class))
		if class.Kind == "DeviceClass" {
			classes = append(classes, class)
		}
	}
	require.NotEmpty(t, classes, profile)
	return classes
}

func rendered(t *testing.T, profile string, nodes []*corev1.Node) []*resourcev1.ResourceSlice {
	t.Helper()
	read, err := config.ReadFiles(t.Context(), []string{filepath.Join(kustomize, "profiles", profile, "template.yaml")})
	require.NoError(t, err)
	set, err := config.NewSet(read)
	require.NoError(t, err)
	release, err := preview.NewRelease(fmt.Sprintf("1.%d", harness.KubernetesMinor()), nil)
	require.NoError(t, err)
	previewed, err := preview.New(t.Context(), release, preview.Cluster{Config: set.Published(), Nodes: nodes})
	require.NoError(t, err)
	require.Empty(t, previewed.Problems)
	return slices.DeleteFunc(previewed.Create, func(s *resourcev1.ResourceSlice) bool { return s.Spec.NodeName == nil }) // or cases would share devices
}

// profileClaim draws a claim of devices like one that there is.
func (d *dice) profileClaim(s *scene, few bool) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	requests, most := 1+d.IntN(3), 3
	if few {
		requests, most = 1+d.IntN(2), 1
	}
	for i := range requests {
		slice := pick(d, s.slices...)
		for len(slice.Spec.Devices) == 0 {
			slice = pick(d, s.slices...)
		}
		like := pick(d, slice.Spec.Devices...)
		exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: pick(d, s.classes...).Name, Count: int64(1 + d.IntN(most))}
		exactly.AllocationMode = resourcev1.DeviceAllocationModeExactCount
		name := pick(d, slices.Sorted(maps.Keys(like.Attributes))...)
		if expression := equals(slice.Spec.Driver, name, like.Attributes[name]); expression != "" {
			exactly.Selectors = []resourcev1.DeviceSelector{selecting(expression)}
		}
		spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i), Exactly: exactly})
		if i == 0 && d.in(2) {
			attribute := qualified(slice.Spec.Driver, pick(d, slices.Sorted(maps.Keys(like.Attributes))...))
			spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
		}
	}
	return spec
}
