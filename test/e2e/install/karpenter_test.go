package install

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

func karpenterRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	return readRole(t, sidecar.Root(), "kustomize", "karpenter", "rbac", "role.yaml")
}

// The API groups of Karpenter's kinds.
const (
	karpenterTest = "test.karpenter.sh"
	karpenterSelf = "karpenter.sh"
)

// karpenterStepOf names the step that needs a permission of the role for
// Karpenter's configuration.
var karpenterStepOf = map[permission]string{
	{core, "configmaps", "list"}:                  "start",
	{core, "configmaps", "watch"}:                 "start",
	{dra, "deviceclasses", "watch"}:               "start",
	{dra, "deviceclasses", "create"}:              "create",
	{dra, "deviceclasses", "update"}:              "update",
	{dra, "deviceclasses", "delete"}:              "delete",
	{karpenterTest, "draconfigs", "list"}:         "start",
	{karpenterTest, "draconfigs", "watch"}:        "start",
	{karpenterTest, "draconfigs/status", "patch"}: "report",
	{karpenterSelf, "nodeoverlays", "list"}:       "start",
	{karpenterSelf, "nodeoverlays", "watch"}:      "start",
}

func karpenterSteps() map[string]step {
	return map[string]step{
		"start":  {nil, func(*player) {}, (*player).notReady},
		"create": {[]string{"start"}, func(p *player) { p.mappings("mapped.example.com") }, func(p *player) string { return p.classLacks("mapped.example.com", "==") }},
		"update": {[]string{"start", "create"}, (*player).editClass, func(p *player) string { return p.classLacks("mapped.example.com", "==") }},
		"delete": {[]string{"start", "create"}, func(p *player) { p.mappings("another.example.com") }, func(p *player) string { return p.hasClass("mapped.example.com") }},
		"report": {[]string{"start"}, (*player).createDRAConfig, (*player).notReportedDRAConfig},
	}
}

// TestKarpenterVerbs does with the role for Karpenter's configuration what
// TestVerbs does with the other. The sidecars run one after the other, since each
// would have the DeviceClasses for itself.
func TestKarpenterVerbs(t *testing.T) {
	t.Parallel()
	v := newVerbs(t)
	definitions := filepath.Join(sidecar.Root(), "test", "e2e", "adapters", "testdata")
	for _, file := range []string{"draconfigs.yaml", "nodeoverlays-prunes.yaml"} {
		_, err := v.cluster.Kubectl(t.Context(), "apply", "-f", filepath.Join(definitions, file))
		require.NoError(t, err)
	}
	until(t, patience, func() string {
		if _, err := v.cluster.Kubectl(t.Context(), "get", "draconfigs,nodeoverlays"); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err := v.cluster.Kubectl(t.Context(), "create", "namespace", "karpenter")
	require.NoError(t, err)
	ours, role, steps := ourRole(t), karpenterRole(t), karpenterSteps()
	both := func(role *rbacv1.ClusterRole) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{Rules: slices.Concat(ours.Rules, role.Rules)}
	}
	t.Run("none", func(t *testing.T) {
		p := v.playKarpenter(t, "whole", both(role), nil)
		for _, step := range []string{"start", "create", "update", "delete", "report"} {
			steps[step].happen(p)
			until(t, patience, func() string { return steps[step].missing(p) })
		}
		require.Empty(t, p.refusals())
		p.cleared()
	})
	for i, taken := range permissions(role) {
		t.Run(strings.ReplaceAll(taken.String(), "/", "-"), func(t *testing.T) {
			step, known := karpenterStepOf[taken]
			require.True(t, known, "nothing is known to need this permission")
			p := v.playKarpenter(t, fmt.Sprintf("karpenter-%d", i), both(without(role, taken)), environmentFor(taken))
			for _, before := range steps[step].after {
				steps[before].happen(p)
				until(t, patience, func() string { return steps[before].missing(p) })
			}
			steps[step].happen(p)
			if taken.verb == "watch" {
				until(t, patience, func() string { return p.notRefused(taken, 3) })
			} else {
				until(t, patience, func() string { return p.notRefused(taken, 1) })
				require.NotEmpty(t, steps[step].missing(p), "it happens without the verb")
			}
			p.cleared()
		})
	}
}

func (v *verbs) playKarpenter(t *testing.T, name string, role *rbacv1.ClusterRole, environment []string) *player {
	t.Helper()
	return v.play(t, name, role, environment, "--dra-kwok-configmap=karpenter/dra-kwok-configmap", "--adapters=DRAConfig,NodeOverlay")
}

// mappings asks for a driver, and so for a DeviceClass.
func (p *player) mappings(driver string) {
	text := fmt.Sprintf("driver: %s\nmappings:\n- {name: m, nodeSelector: {matchLabels: {none: none}}, resourceSlice: {devices: [{name: gpu, count: 1}]}}\n", driver)
	encoded, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "karpenter", "name": "dra-kwok-configmap"},
		"data": map[string]string{"config.yaml": text},
	})
	require.NoError(p, err)
	_, err = p.cluster.KubectlInput(p.Context(), strings.NewReader(string(encoded)), "apply", "-f", "-")
	require.NoError(p, err)
}

// classLacks says so while the class does not select by an expression with the
// words.
func (p *player) classLacks(name, words string) string {
	class, err := p.client.ResourceV1().DeviceClasses().Get(p.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !strings.Contains(class.Spec.Selectors[0].CEL.Expression, words) {
		return fmt.Sprintf("the DeviceClass %s is %v", name, class)
	}
	require.NoError(p, err)
	return ""
}

func (p *player) hasClass(name string) string {
	_, err := p.client.ResourceV1().DeviceClasses().Get(p.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(p, err)
	return "the DeviceClass " + name + " is there"
}

func (p *player) editClass() {
	patch := `{"spec": {"selectors": [{"cel": {"expression": "false"}}]}}`
	_, err := p.client.ResourceV1().DeviceClasses().Patch(p.Context(), "mapped.example.com", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(p, err)
}

func (p *player) createDRAConfig() {
	text := fmt.Sprintf(`{"apiVersion": "test.karpenter.sh/v1alpha1", "kind": "DRAConfig", "metadata": {"name": %q}, "spec": {"driver": "fpga.example.com", "pools": [
		{"name": "p", "nodeSelectorTerms": [{"matchExpressions": [{"key": "none", "operator": "Exists"}]}], "resourceSlices": [{"devices": [{"name": "fpga"}]}]}]}}`, p.name)
	_, err := p.cluster.KubectlInput(p.Context(), strings.NewReader(text), "apply", "-f", "-")
	require.NoError(p, err)
}

func (p *player) notReportedDRAConfig() string {
	for _, event := range p.audited() {
		if event.ObjectRef.Resource == "draconfigs" && event.ObjectRef.Name == p.name && event.ResponseStatus.Code == http.StatusOK {
			return ""
		}
	}
	return "no status of DRAConfig " + p.name + " was written"
}

// cleared ends the sidecar and takes away what the next would find.
func (p *player) cleared() {
	p.sidecar.stop()
	for _, name := range []string{"mapped.example.com", "another.example.com"} {
		err := p.client.ResourceV1().DeviceClasses().Delete(p.Context(), name, metav1.DeleteOptions{})
		require.True(p, err == nil || apierrors.IsNotFound(err))
	}
	err := p.client.CoreV1().ConfigMaps("karpenter").Delete(p.Context(), "dra-kwok-configmap", metav1.DeleteOptions{})
	require.True(p, err == nil || apierrors.IsNotFound(err))
}
