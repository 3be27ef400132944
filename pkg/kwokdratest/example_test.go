package kwokdratest_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/pkg/kwokdratest"
)

// The first lines of a test of a controller that reads ResourceSlices. The API server is that
// of envtest, or any other.
func ExampleStart() {
	var t *testing.T            // the test's own
	var environment rest.Config // of the API server that the test has started

	config := kwokdratest.Start(t, &environment, kwokdratest.Options{
		Config: []string{"gpus.yaml"}, // templates, as for kwok-dra --config
		Nodes:  kwokdratest.Nodes("gpu", 3, map[string]string{"accelerator": "h100"}),
	})

	// Three nodes are Ready, and their ResourceSlices are complete.
	client := kubernetes.NewForConfigOrDie(config)
	slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(slices.Items) != 3 {
		t.Errorf("found %d ResourceSlices: %v", len(slices.Items), err)
	}
}

func ExampleNodes() {
	for _, node := range kwokdratest.Nodes("gpu", 2, map[string]string{"accelerator": "h100"}) {
		fmt.Println(node.Name, node.Labels)
	}
	// Output:
	// gpu-0 map[accelerator:h100 kubernetes.io/hostname:gpu-0]
	// gpu-1 map[accelerator:h100 kubernetes.io/hostname:gpu-1]
}
