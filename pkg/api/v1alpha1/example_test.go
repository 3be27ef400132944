package v1alpha1_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// Write a template for nodes with eight GPUs each as YAML, for kubectl apply or kwok-dra --config.
func ExampleResourcePoolTemplate() {
	template := v1alpha1.ResourcePoolTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.ResourcePoolTemplateKind},
		ObjectMeta: metav1.ObjectMeta{Name: "h100"},
		Spec: v1alpha1.ResourcePoolTemplateSpec{
			Driver: "gpu.example.com",
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "accelerator", Operator: corev1.NodeSelectorOpIn, Values: []string{"h100"}}},
			}}},
			Devices: []v1alpha1.DeviceTemplate{{
				Name:  "gpu",
				Count: new(int32(8)),
				Attributes: map[resourcev1.QualifiedName]v1alpha1.Attribute{
					"model": {Type: v1alpha1.AttributeString, Value: "H100"},
					"index": {Type: v1alpha1.AttributeInt, Value: "{{ .Index }}"},
				},
				Capacity: map[resourcev1.QualifiedName]v1alpha1.Capacity{"memory": {Value: "80Gi"}},
			}},
		},
	}
	text, err := yaml.Marshal(template)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// apiVersion: dra.kwok.x-k8s.io/v1alpha1
	// kind: ResourcePoolTemplate
	// metadata:
	//   name: h100
	// spec:
	//   devices:
	//   - attributes:
	//       index:
	//         int: '{{ .Index }}'
	//       model:
	//         string: H100
	//     capacity:
	//       memory:
	//         value: 80Gi
	//     count: 8
	//     name: gpu
	//   driver: gpu.example.com
	//   nodeSelector:
	//     nodeSelectorTerms:
	//     - matchExpressions:
	//       - key: accelerator
	//         operator: In
	//         values:
	//         - h100
}

// Read a template with the decoder of a scheme, as clients do.
func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	object, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(`
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: h100}
spec:
  driver: gpu.example.com
  devices: [{name: gpu, count: 8}]
`), nil, nil)
	if err != nil {
		panic(err)
	}
	template := object.(*v1alpha1.ResourcePoolTemplate)
	fmt.Printf("%s: %d devices of %s\n", template.Name, *template.Spec.Devices[0].Count, template.Spec.Driver)
	// Output: h100: 8 devices of gpu.example.com
}
