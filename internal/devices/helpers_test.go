package devices

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	_ "github.com/kwok-dra/kwok-dra/internal/extensions/templatefields" // it checks what Go templates read
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// source is a defaulted template, its spec written in YAML.
func source(t testing.TB, name, spec string) *v1alpha1.ResourcePoolTemplate {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(spec))
	require.NoError(t, err)
	template := &v1alpha1.ResourcePoolTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	strict, err := sigsjson.UnmarshalStrict(data, &template.Spec)
	require.NoError(t, err)
	require.Empty(t, strict)
	defaults.SetResourcePoolTemplate(template)
	return template
}

func compile(t testing.TB, name, spec string) *Template {
	t.Helper()
	compiled, errs := Compile(source(t, name, spec))
	require.Empty(t, errs)
	return compiled
}

// oneGPU is a template of driver d with one device gpu and its attributes.
func oneGPU(attributes string) string {
	return "driver: d\ndevices:\n- name: gpu\n  attributes: {" + attributes + "}\n"
}

func newNode(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: labels}}
}

func render(t testing.TB, node *corev1.Node, templates ...*Template) []Pool {
	t.Helper()
	pools, err := Pools(templates, lifecycle.NewObject(node))
	require.NoError(t, err)
	return pools
}

func deviceNames(devices []resourcev1.Device) []string {
	var names []string
	for i := range devices {
		names = append(names, devices[i].Name)
	}
	return names
}

// Pools are the pools of a node, where no templates clash.
func Pools(templates []*Template, node *lifecycle.Object) ([]Pool, error) {
	taints, err := TaintsOf(node)
	if err != nil {
		return nil, err
	}
	pools, refusals, err := PoolsForNode(templates, node, taints)
	if len(refusals) > 0 {
		return nil, refusals[0].Err
	}
	return pools, err
}
