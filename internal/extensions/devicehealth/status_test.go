package devicehealth

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
)

func TestMergeResources(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ have, want, merged []corev1.ResourceStatus }{
		"nothing":     {nil, nil, nil},
		"new":         {nil, claimstest.StatusesOf("claim:b x=Unknown", "claim:a y=Unknown"), claimstest.StatusesOf("claim:a y=Unknown", "claim:b x=Unknown")},
		"replaced":    {claimstest.StatusesOf("claim:a x=Unknown y=Unknown"), claimstest.StatusesOf("claim:a x=Healthy"), claimstest.StatusesOf("claim:a x=Healthy")},
		"foreign":     {claimstest.StatusesOf("example.com/gpu z=Healthy"), claimstest.StatusesOf("claim:a x=Healthy"), claimstest.StatusesOf("claim:a x=Healthy", "example.com/gpu z=Healthy")},
		"only theirs": {claimstest.StatusesOf("example.com/gpu z=Healthy"), nil, claimstest.StatusesOf("example.com/gpu z=Healthy")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.merged, mergeResources(test.have, test.want))
		})
	}
}

func TestHealthPatch(t *testing.T) {
	t.Parallel()
	pod := claimstest.NewPod("p", "c")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "plain"},
		{Name: "has", AllocatedResourcesStatus: claimstest.StatusesOf("other z=Healthy", "claim:c x=Healthy")},
		{Name: "lacks", AllocatedResourcesStatus: claimstest.StatusesOf("other z=Healthy")},
	}
	want := map[string][]corev1.ResourceStatus{"has": claimstest.StatusesOf("claim:c x=Healthy"), "lacks": claimstest.StatusesOf("claim:c x=Healthy"), "gone": claimstest.StatusesOf("claim:c y=Healthy")}
	encoded, err := json.Marshal(newPatch(pod, want).Content)
	require.NoError(t, err)
	entry := func(name, id string) string {
		return fmt.Sprintf(`{"name": %q, "resources": [{"resourceID": %q, "health": "Healthy"}]}`, name, id)
	}
	require.JSONEq(t, `[
		{"op": "test", "path": "/metadata/uid", "value": "uid-of-p"},
		{"op": "test", "path": "/status/containerStatuses/2/name", "value": "lacks"},
		{"op": "add", "path": "/status/containerStatuses/2/allocatedResourcesStatus", "value": [`+entry("claim:c", "x")+", "+entry("other", "z")+`]}
	]`, string(encoded))

	pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:2]
	require.Nil(t, newPatch(pod, want), "nothing changes")
}
