package devices

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// patienceWithOne is how long one template may take, on a machine that has much
// else to do.
const patienceWithOne = time.Minute

// costly finds quantities that may take as long as they like: who writes the
// configuration may have them.
var costly = regexp.MustCompile(`\d{5,}|[eE][-+]?\d{3,}`)

// FuzzRender: whatever compiles is rendered and laid out, or refused, without a
// panic, and twice the same.
func FuzzRender(f *testing.F) {
	node := `{"metadata": {"name": "n", "uid": "u", "labels": {"zone": "z1"}, "annotations": {"dra.kwok.x-k8s.io/device-taints": "gpu-0:xid:NoExecute"}}}`
	seeds, err := filepath.Glob("testdata/render/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, seeds)
	for _, path := range seeds {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		document, err := yaml.YAMLToJSONStrict(text)
		require.NoError(f, err)
		f.Add(document, []byte(node))
	}
	f.Fuzz(func(t *testing.T, document, node []byte) {
		var template v1alpha1.ResourcePoolTemplate
		var object corev1.Node
		if costly.Match(document) || sigsjson.UnmarshalCaseSensitivePreserveInts(document, &template) != nil || sigsjson.UnmarshalCaseSensitivePreserveInts(node, &object) != nil {
			return
		}
		start := time.Now()
		defaults.SetResourcePoolTemplate(&template)
		compiled, errs := Compile(&template)
		if len(errs) > 0 {
			return
		}
		once, err := renderOne(compiled, &object)
		again, errAgain := renderOne(compiled, &object)
		require.Equal(t, once, again)
		require.Equal(t, err == nil, errAgain == nil)
		require.Less(t, time.Since(start), patienceWithOne)
		for i := range once {
			requireSound(t, &once[i])
		}
	})
}

// renderOne makes the pools of a template that counts on the node.
func renderOne(template *Template, node *corev1.Node) ([]Pool, error) {
	if template.SharedPool() == "" {
		return Pools([]*Template{template}, lifecycle.NewObject(node))
	}
	pool, err := template.NewSharedPool()
	if err != nil {
		return nil, err
	}
	return []Pool{*pool}, nil
}

// requireSound has every device of a pool in one slice, under a name that it may
// have, whatever the layout.
func requireSound(t *testing.T, pool *Pool) {
	t.Helper()
	require.Empty(t, validation.ValidatePoolName(pool.Name, nil))
	names := map[string]bool{}
	for i := range pool.Devices {
		name := pool.Devices[i].Name
		require.Empty(t, content.IsDNS1123Label(name), name)
		require.False(t, names[name], name)
		names[name] = true
	}
	for _, layout := range []Layout{CountersApart, CountersWithDevices} {
		made, err := pool.Slices(layout)
		if err != nil {
			continue
		}
		count := 0
		for _, slice := range made {
			count += len(slice.Devices)
		}
		require.Equal(t, len(pool.Devices), count)
	}
}

// TestRenderSeeds: the seeds compile and render.
func TestRenderSeeds(t *testing.T) {
	t.Parallel()
	seeds, err := filepath.Glob("testdata/render/*.yaml")
	require.NoError(t, err)
	for _, path := range seeds {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var template v1alpha1.ResourcePoolTemplate
		require.NoError(t, yaml.UnmarshalStrict(text, &template), path)
		defaults.SetResourcePoolTemplate(&template)
		compiled, errs := Compile(&template)
		require.Empty(t, errs, path)
		pools, err := renderOne(compiled, newNode("n", map[string]string{"zone": "z1"}))
		require.NoError(t, err, path)
		require.NotEmpty(t, pools, path)
	}
}
