package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
)

// pathIn is the path of a claim in the namespace default.
func pathIn(t *testing.T, client kubernetes.Interface, claim string) []history.Step {
	t.Helper()
	s, err := readStory(t.Context(), client, "default", claim)
	require.NoError(t, err)
	return s.ListSteps()
}

// TestPath has a claim that a driver reports on, and two Pods, of which one is
// gone.
func TestPath(t *testing.T) {
	t.Parallel()
	objects := fleet()
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}
	objects = append(objects, failure("late", "not yet", 3))
	client := fake.NewClientset(objects...)
	late := pod("late", "a", "reported", scheduled, ready)
	_, err := client.CoreV1().Pods("default").Update(t.Context(), late, metav1.UpdateOptions{})
	require.NoError(t, err)
	listed := pathIn(t, client, "reported")
	var out strings.Builder
	require.NoError(t, steps.StepTable(listed).Print(&out, output.Table))
	require.Equal(t, `TIME                   AFTER   OBJECT                           STEP                             DETAIL
2026-01-02T03:04:05Z   0s      claim                            created                          gpu wants 1 of gpu
2026-01-02T03:04:06Z   1s      Pod late                         created                          <none>
2026-01-02T03:04:07Z   2s      claim                            allocated                        gpu=gpu.example.com/a/gpu-2
2026-01-02T03:04:07Z   2s      claim                            reserved                         for pods/late
2026-01-02T03:04:08Z   3s      Pod late                         PodScheduled=True                on node a
2026-01-02T03:04:08Z   3s      Pod late                         FailedPrepareDynamicResources    not yet (2 times)
2026-01-02T03:04:09Z   4s      device gpu.example.com/a/gpu-2   Ready=True                       Prepared
2026-01-02T03:04:11Z   6s      claim                            prepared                         for pods/late
2026-01-02T03:04:11Z   6s      Pod late                         PodReadyToStartContainers=True   <none>
`, out.String())

	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "late", metav1.DeleteOptions{}))
	listed = pathIn(t, client, "reported")
	gone := listed[slices.IndexFunc(listed, func(s history.Step) bool { return s.What == "gone" })]
	require.Equal(t, []string{"Pod late", "the claim is still reserved for it"}, []string{gone.Object, gone.Detail})

	_, err = readStory(t.Context(), client, "default", "none-such")
	require.EqualError(t, err, `there is no claim "none-such" in namespace default: did you mean none?`)
}

// TestPathWritten tells who last wrote the status of devices, and of which time nothing is known.
func TestPathWritten(t *testing.T) {
	t.Parallel()
	shared := claim("shared", "a", []string{"gpu-0"}, "one", "two")
	shared.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:status":{"f:allocation":{"f:devices":{}}}}`)
	shared.ManagedFields = append(shared.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: "kwok-dra", Subresource: "status", Time: new(at(5)), FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:devices":{}}}`),
	})
	runs := pod("two", "a", "shared")
	runs.Status.Phase = corev1.PodRunning
	listed := pathIn(t, fake.NewClientset(shared, pod("one", "a", "shared", ready), runs), "shared")
	var out strings.Builder
	require.NoError(t, steps.StepTable(listed).Print(&out, output.Table))
	require.Regexp(t, `(?m)^2026-01-02T03:04:10Z +5s +claim +devices written +last by kwok-dra$`, out.String())
	require.Regexp(t, `(?m)^2026-01-02T03:04:11Z +6s +claim +prepared +for pods/one$`, out.String())
	require.Regexp(t, `(?m)^<unknown> +<unknown> +claim +prepared +for pods/two, which runs: the Pod does not say when$`, out.String())
	require.Regexp(t, `(?m)^<unknown> +<unknown> +claim +reserved +for pods/one: of several it is not kept when$`, out.String())
}

// TestNoClaim finds the claim of a Pod by the name of the Pod.
func TestNoClaim(t *testing.T) {
	t.Parallel()
	made := claim("train-gpus-x7k2p", "", nil)
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "train"}}
	client := fake.NewClientset(made)
	for name, hint := range map[string]string{
		"train":            "Pod train has the claim train-gpus-x7k2p",
		"train-gpus-x7k2q": "did you mean train-gpus-x7k2p?",
		"other":            "list them with kubectl get resourceclaims -n default",
	} {
		_, err := readStory(t.Context(), client, "default", name)
		require.EqualError(t, err, fmt.Sprintf("there is no claim %q in namespace default: %s", name, hint))
	}
}
