package instancetypes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/kwok/options"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// devicesOf makes Devices of documents.
func devicesOf(t *testing.T, documents string) *Devices {
	t.Helper()
	path := filepath.Join(t.TempDir(), "templates.yaml")
	require.NoError(t, os.WriteFile(path, []byte(documents), 0o600))
	return devicesOfFiles(t, path)
}

func devicesOfFiles(t *testing.T, paths ...string) *Devices {
	t.Helper()
	templates, err := templatenode.ReadTemplates(t.Context(), paths...)
	require.NoError(t, err)
	client := fake.NewClientset()
	// An API server that keeps every field. The tracker knows no dry runs.
	client.PrependReactor("create", "resourceslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	return NewDevices(client, templates)
}

// catalogue are the files with templates of all profiles.
func catalogue(t *testing.T) []string {
	t.Helper()
	profiles := filepath.Join(sidecar.Root(), "kustomize", "profiles")
	flat, err := filepath.Glob(filepath.Join(profiles, "*", "template.yaml"))
	require.NoError(t, err)
	deep, err := filepath.Glob(filepath.Join(profiles, "*", "*", "template.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, flat)
	return append(flat, deep...)
}

// shipped are the instance types of the file for Karpenter's KWOK provider, by
// name. Tests share them and leave them as they are.
var shipped map[string]*cloudprovider.InstanceType

// TestMain makes the instance types before any test runs: making one writes
// Karpenter's global set of well-known labels, which parallel tests read.
func TestMain(m *testing.M) {
	path := filepath.Join(sidecar.Root(), "kustomize", "karpenter", "instance-types", "instance_types.json")
	types, err := kwok.ConstructInstanceTypes(options.ToContext(context.Background(), &options.Options{InstanceTypesFilePath: path}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shipped = map[string]*cloudprovider.InstanceType{}
	for _, it := range types {
		if shipped[it.Name] != nil {
			fmt.Fprintf(os.Stderr, "%s: instance type %s is there twice\n", path, it.Name)
			os.Exit(1)
		}
		shipped[it.Name] = it
	}
	os.Exit(m.Run())
}

func nodePool(name string, labels map[string]string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	pool.Spec.Template.Labels = labels
	pool.Spec.Template.Spec.Requirements = requirements
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	return pool
}

func requirement(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// names are the names of devices by driver.
func names(templates []*cloudprovider.ResourceSliceTemplate) map[string][]string {
	byDriver := map[string][]string{}
	for _, slice := range templates {
		for i := range slice.Devices {
			byDriver[slice.Driver.Value()] = append(byDriver[slice.Driver.Value()], slice.Devices[i].Name.Value())
		}
	}
	return byDriver
}
