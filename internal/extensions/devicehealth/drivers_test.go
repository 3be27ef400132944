package devicehealth

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/claims/plan"
	"github.com/kwok-dra/kwok-dra/internal/claims/templates"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// TestHealthOfContainers selects by claim and by request.
func TestHealthOfContainers(t *testing.T) {
	t.Parallel()
	const (
		plain    = ""
		withCDI  = "  claimStatus: {cdiDeviceIDs: ['k8s.d/gpu={{ .Result.device }}', second]}\n"
		sameCDI  = "  claimStatus: {cdiDeviceIDs: [k8s.d/gpu=all]}\n"
		readPods = "  claimStatus: {data: {first: '{{ (index .Pods 0).name }}'}}\n"
		reports  = "  health: Report\n"
	)
	for name, test := range map[string]struct {
		spec   string
		taint  string
		claims []corev1.ResourceClaim
		want   []corev1.ResourceStatus
	}{
		"claim":                 {plain, "", []corev1.ResourceClaim{{Name: "c"}}, claimstest.StatusesOf("claim:c d/n/gpu-0=Unknown d/n/gpu-1=Unknown d/n/gpu-2=Unknown")},
		"request":               {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unknown")},
		"request with variants": {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "two"}}, claimstest.StatusesOf("claim:c/two d/n/gpu-1=Unknown d/n/gpu-2=Unknown")},
		"both requests": {
			plain, "",
			[]corev1.ResourceClaim{{Name: "c", Request: "two"}, {Name: "c", Request: "one"}},
			claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unknown", "claim:c/two d/n/gpu-1=Unknown d/n/gpu-2=Unknown"),
		},
		"no such request":   {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "three"}}, nil},
		"no such claim":     {plain, "", []corev1.ResourceClaim{{Name: "b"}}, nil},
		"no claims":         {plain, "", nil, nil},
		"CDI id":            {withCDI, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one k8s.d/gpu=gpu-0=Unknown")},
		"one CDI id of all": {sameCDI, "", []corev1.ResourceClaim{{Name: "c"}}, claimstest.StatusesOf("claim:c k8s.d/gpu=all=Unknown")},
		"data reads Pods":   {readPods, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unknown")},
		"healthy":           {reports, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"NoSchedule":        {reports, "gpu-0:a=b:NoSchedule", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unhealthy")},
		"NoExecute":         {reports, "gpu-0:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unhealthy")},
		"None":              {reports, "gpu-0:a=b:None", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"another tainted":   {reports, "gpu-1:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"does not report":   {plain, "gpu-0:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, claimstest.StatusesOf("claim:c/one d/n/gpu-0=Unknown")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := claimstest.Allocated("c")
			one, two, three, other := claimstest.Device("d", "gpu-0"), claimstest.Device("d", "gpu-1"), claimstest.Device("d", "gpu-2"), claimstest.Device("other", "x")
			one.Request, two.Request, three.Request = "one", "two/big", "two/small"
			claimstest.Allocate(claim, one, two, three, other, one)
			for _, mode := range []string{"Faithful", "Minimal"} {
				set := configtest.SetOf(t, claimstest.Template("d", test.spec)+claimstest.Configuration("{podStatus: "+mode+"}"))
				want := test.want
				if mode == "Minimal" && test.spec != reports {
					want = nil
				}
				require.Equal(t, want, shown(t, viewOf(set, claim, test.taint, test.claims)), mode)
			}
		})
	}
}

// viewOf is the view of a Pod that runs and whose container has claims.
func viewOf(set *config.Set, claim *resourcev1.ResourceClaim, taints string, claims []corev1.ResourceClaim) *plan.PodView {
	node, pod := claimstest.NewNode("n"), claimstest.NewPod("p", "c")
	if taints != "" {
		node.Annotations[v1alpha1.DeviceTaintsAnnotation] = taints
	}
	pod.Spec.Containers[0].Resources.Claims = claims
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
	return &plan.PodView{
		Pod:     pod,
		Node:    node,
		Set:     set,
		Driver:  templates.New(set, node, templates.Slices{}, nil),
		Claims:  plan.PodClaims{Known: map[string]*resourcev1.ResourceClaim{"c": claim}},
		Standby: func([]*resourcev1.ResourceClaim) bool { return false },
		Health:  Shown{},
	}
}

// shown is what the plan has the container show.
func shown(t *testing.T, v *plan.PodView) []corev1.ResourceStatus {
	t.Helper()
	next, err := plan.ForPod(t.Context(), v, claimstest.Noon)
	require.NoError(t, err)
	if next.Patch == nil {
		return nil
	}
	require.Equal(t, plan.PatchHealth, next.Patch.Operation)
	encoded, err := json.Marshal(next.Patch.Content)
	require.NoError(t, err)
	var operations []struct{ Value json.RawMessage }
	require.NoError(t, json.Unmarshal(encoded, &operations))
	var statuses []corev1.ResourceStatus
	require.NoError(t, json.Unmarshal(operations[len(operations)-1].Value, &statuses))
	return statuses
}
