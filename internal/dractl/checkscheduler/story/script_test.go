package story

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestScript proves that each kind of change becomes its commands, in the order in time.
func TestScript(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "claim", Namespace: "s"}
	claim := &resourcev1.ResourceClaim{TypeMeta: typeOf(resourceVersion, "ResourceClaim"), ObjectMeta: meta}
	quota := &corev1.ResourceQuota{TypeMeta: typeOf("v1", "ResourceQuota"), ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: "s"}}
	class := &resourcev1.DeviceClass{TypeMeta: typeOf(resourceVersion, "DeviceClass"), ObjectMeta: metav1.ObjectMeta{Name: "s-gpu"}}
	pod := Ref{"v1", "Pod", "pod"}
	s := &Story{ID: "s", Seed: 7, Steps: []Step{
		{Say: "One.", Create: Objects{quota, claim}, Answer: Ready, Rest: true},
		{
			Say: "Two.", Replace: Objects{class}, Drain: []string{"s-node"}, Answer: Failed,
			Patch:  []Patch{{Ref: pod, Subresource: "status", Merge: `{"status": {"phase": "Succeeded"}}`}, {Ref: Ref{"v1", "Node", "s-node"}, Merge: `{}`}},
			Delete: []Deletion{{Ref: refTo(claim)}, {Ref: pod}, {Ref: Ref{"v1", "Pod", "slow"}, IsGraceful: true}},
		},
		{Say: "Three.", Create: Objects{claim}},
	}}
	var script bytes.Buffer
	require.NoError(t, s.WriteScript(&script))
	_, steps, isFound := strings.Cut(script.String(), "\nfi\n")
	require.True(t, isFound)
	require.Equal(t, `
# 1. One.
kubectl create -f - <<'EOF'
apiVersion: v1
kind: ResourceQuota
metadata:
  name: quota
  namespace: s
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
  namespace: s
spec:
  devices: {}
EOF
kubectl wait --for=jsonpath='{.status.hard}' -n s resourcequota quota
answer bindingConditions
rest
kubectl get pods,resourceclaims -n s -o wide

# 2. Two.
kubectl replace -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: s-gpu
EOF
kubectl patch -n s pod pod --subresource=status --type=merge -p '{"status": {"phase": "Succeeded"}}'
kubectl patch node s-node --type=merge -p '{}'
kubectl delete -n s resourceclaim claim --ignore-not-found --wait=false
kubectl delete -n s pod pod --ignore-not-found --wait=false --grace-period=0 --force
kubectl delete -n s pod slow --ignore-not-found --wait=false --grace-period=300
kubectl cordon s-node
kubectl delete pods -n s --field-selector spec.nodeName=s-node --grace-period=0 --force --wait=false
answer bindingFailureConditions

# 3. Three.
kubectl wait --for=delete -n s resourceclaim claim --timeout=60s
kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
  namespace: s
spec:
  devices: {}
EOF
`, steps)
}

// TestScriptsAreShell proves that the shell can read the scripts of random stories.
func TestScriptsAreShell(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	for seed := range int64(20) {
		var script bytes.Buffer
		require.NoError(t, New("story", seed, everything).WriteScript(&script))
		command := exec.CommandContext(t.Context(), shell, "-n")
		command.Stdin = &script
		output, err := command.CombinedOutput()
		require.NoError(t, err, "seed %d: %s", seed, output)
	}
}
