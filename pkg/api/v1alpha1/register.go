package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the kinds in this package.
	GroupName = "dra.kwok.x-k8s.io"
	// APIVersion is the apiVersion of the kinds in this package.
	APIVersion = GroupName + "/v1alpha1"

	// ResourcePoolTemplateKind is the kind of ResourcePoolTemplate.
	ResourcePoolTemplateKind = "ResourcePoolTemplate"
	// KwokDRAConfigurationKind is the kind of KwokDRAConfiguration.
	KwokDRAConfigurationKind = "KwokDRAConfiguration"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ResourcePoolTemplate{}, &ResourcePoolTemplateList{},
		&KwokDRAConfiguration{}, &KwokDRAConfigurationList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
