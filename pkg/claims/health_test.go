package claims

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// statusOf reads "claim:a x=Unknown y=Healthy".
func statusOf(text string) corev1.ResourceStatus {
	words := strings.Fields(text)
	status := corev1.ResourceStatus{Name: corev1.ResourceName(words[0])}
	for _, word := range words[1:] {
		at := strings.LastIndex(word, "=") // CDI ids have one themselves
		status.Resources = append(status.Resources, corev1.ResourceHealth{ResourceID: corev1.ResourceID(word[:at]), Health: corev1.ResourceHealthStatus(word[at+1:])})
	}
	return status
}

func statusesOf(texts ...string) []corev1.ResourceStatus {
	var statuses []corev1.ResourceStatus
	for _, text := range texts {
		statuses = append(statuses, statusOf(text))
	}
	return statuses
}

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
		"claim":                 {plain, "", []corev1.ResourceClaim{{Name: "c"}}, statusesOf("claim:c d/n/gpu-0=Unknown d/n/gpu-1=Unknown d/n/gpu-2=Unknown")},
		"request":               {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Unknown")},
		"request with variants": {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "two"}}, statusesOf("claim:c/two d/n/gpu-1=Unknown d/n/gpu-2=Unknown")},
		"both requests": {
			plain, "",
			[]corev1.ResourceClaim{{Name: "c", Request: "two"}, {Name: "c", Request: "one"}},
			statusesOf("claim:c/two d/n/gpu-1=Unknown d/n/gpu-2=Unknown", "claim:c/one d/n/gpu-0=Unknown"),
		},
		"no such request":   {plain, "", []corev1.ResourceClaim{{Name: "c", Request: "three"}}, nil},
		"no such claim":     {plain, "", []corev1.ResourceClaim{{Name: "b"}}, nil},
		"no claims":         {plain, "", nil, nil},
		"CDI id":            {withCDI, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one k8s.d/gpu=gpu-0=Unknown")},
		"one CDI id of all": {sameCDI, "", []corev1.ResourceClaim{{Name: "c"}}, statusesOf("claim:c k8s.d/gpu=all=Unknown")},
		"data reads Pods":   {readPods, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Unknown")},
		"healthy":           {reports, "", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"NoSchedule":        {reports, "gpu-0:a=b:NoSchedule", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Unhealthy")},
		"NoExecute":         {reports, "gpu-0:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Unhealthy")},
		"None":              {reports, "gpu-0:a=b:None", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"another tainted":   {reports, "gpu-1:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Healthy")},
		"does not report":   {plain, "gpu-0:a=b:NoExecute", []corev1.ResourceClaim{{Name: "c", Request: "one"}}, statusesOf("claim:c/one d/n/gpu-0=Unknown")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := allocated("c")
			one, two, three, other := device("d", "gpu-0"), device("d", "gpu-1"), device("d", "gpu-2"), device("other", "x")
			one.Request, two.Request, three.Request = "one", "two/big", "two/small"
			allocate(claim, one, two, three, other, one)
			a := attemptOf(setOf(t, template("d", test.spec)), newPod("p", "c"))
			if test.taint != "" {
				a = tainted(a, test.taint)
			}
			h := healthReport{a: a, claims: map[string]*resourcev1.ResourceClaim{"c": claim}}
			got, err := h.container(&corev1.Container{Resources: corev1.ResourceRequirements{Claims: test.claims}})
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.spec == reports, h.show)
		})
	}
}

func tainted(a *attempt, taints string) *attempt {
	node := a.node.DeepCopy()
	node.Annotations[v1alpha1.DeviceTaintsAnnotation] = taints
	tainted := attemptOf(a.set, a.pod)
	tainted.node = node
	tainted.lookup = lookupOf(a.set, node)
	return tainted
}

func TestMergeResources(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ have, want, merged []corev1.ResourceStatus }{
		"nothing":     {nil, nil, nil},
		"new":         {nil, statusesOf("claim:b x=Unknown", "claim:a y=Unknown"), statusesOf("claim:a y=Unknown", "claim:b x=Unknown")},
		"replaced":    {statusesOf("claim:a x=Unknown y=Unknown"), statusesOf("claim:a x=Healthy"), statusesOf("claim:a x=Healthy")},
		"foreign":     {statusesOf("example.com/gpu z=Healthy"), statusesOf("claim:a x=Healthy"), statusesOf("claim:a x=Healthy", "example.com/gpu z=Healthy")},
		"only theirs": {statusesOf("example.com/gpu z=Healthy"), nil, statusesOf("example.com/gpu z=Healthy")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.merged, mergeResources(test.have, test.want))
		})
	}
}

func TestHealthPatch(t *testing.T) {
	t.Parallel()
	pod := newPod("p", "c")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "plain"},
		{Name: "has", AllocatedResourcesStatus: statusesOf("other z=Healthy", "claim:c x=Healthy")},
		{Name: "lacks", AllocatedResourcesStatus: statusesOf("other z=Healthy")},
	}
	want := map[string][]corev1.ResourceStatus{"has": statusesOf("claim:c x=Healthy"), "lacks": statusesOf("claim:c x=Healthy"), "gone": statusesOf("claim:c y=Healthy")}
	patch, err := healthPatch(pod, want)
	require.NoError(t, err)
	entry := func(name, id string) string {
		return fmt.Sprintf(`{"name": %q, "resources": [{"resourceID": %q, "health": "Healthy"}]}`, name, id)
	}
	require.JSONEq(t, `[
		{"op": "test", "path": "/metadata/uid", "value": "uid-of-p"},
		{"op": "test", "path": "/status/containerStatuses/2/name", "value": "lacks"},
		{"op": "add", "path": "/status/containerStatuses/2/allocatedResourcesStatus", "value": [`+entry("claim:c", "x")+", "+entry("other", "z")+`]}
	]`, string(patch))

	pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:2]
	patch, err = healthPatch(pod, want)
	require.NoError(t, err)
	require.Nil(t, patch, "nothing changes")
}
