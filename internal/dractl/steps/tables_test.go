package steps

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/testing/tabletest"
)

// TestTables renders each table of the package.
func TestTables(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	listed := []history.Step{
		{Time: new(start), What: "created", Detail: "gpu wants 1 of gpu"},
		{Time: new(start.Add(1500 * time.Millisecond)), What: "FailedPrepareDynamicResources", Object: "Pod " + tabletest.Pod, Detail: "the driver " + tabletest.Driver + " is not registered (3 times)"},
		{What: "reserved", Detail: "for pods/" + tabletest.Pod + ": of several it is not kept when"},
		{Time: new(start.Add(time.Minute)), What: "Ready=True", Object: "device " + tabletest.Driver + "/" + tabletest.Node + "/gpu-0"},
	}
	tabletest.Golden(t, map[string]func(out io.Writer) error{
		"StepTable": func(out io.Writer) error { return StepTable(listed).Print(out, output.Table) },
	}, tabletest.Node, tabletest.Driver, tabletest.Pod)
}

// TestExplainMissing names what may be meant.
func TestExplainMissing(t *testing.T) {
	t.Parallel()
	claims := []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{
		Name: "train-gpus-x7k2p", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "train"}},
	}}}
	for name, hint := range map[string]string{
		"train":            "Pod train has the claim train-gpus-x7k2p",
		"train-gpus-x7k2q": "did you mean train-gpus-x7k2p?",
		"other":            "list them with kubectl get resourceclaims -n default",
	} {
		require.EqualError(t, ExplainMissing("default", name, claims), `there is no claim "`+name+`" in namespace default: `+hint)
	}
}
