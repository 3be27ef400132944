package kwokdratest_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kwok-dra/kwok-dra/pkg/kwokdratest"
)

// environment stands for an envtest.Environment that is started.
var environment struct{ Config *rest.Config }

// A test of a controller that looks at ResourceSlices.
func ExampleStart() {
	_ = func(t *testing.T) {
		config := kwokdratest.Start(t, environment.Config, kwokdratest.Options{
			Config: []string{"../../kustomize/profiles/nvidia-h100/template.yaml"},
			Nodes:  kwokdratest.Nodes("gpu", 3, map[string]string{"dra.kwok.x-k8s.io/profile": "nvidia-h100"}),
		})
		client := kubernetes.NewForConfigOrDie(config)
		slices, err := client.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
		if err != nil || len(slices.Items) != 3 {
			t.Errorf("found %d ResourceSlices: %v", len(slices.Items), err)
		}
	}
}
