package documents

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	resourcev1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	resourcev1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// versions convert the older versions of resource.k8s.io into v1.
var versions = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(resourcev1.AddToScheme(scheme))
	utilruntime.Must(resourcev1beta1.AddToScheme(scheme))
	utilruntime.Must(resourcev1beta2.AddToScheme(scheme))
	return scheme
}()

// Into converts an object into a typed one, and the older versions of
// resource.k8s.io into v1. Unknown fields are left out, as the API server would.
func (o Object) Into(typed any) error {
	_, err := o.Convert(typed)
	return err
}

// Convert is Into, and returns the paths of the fields that are left out.
func (o Object) Convert(typed any) (unknown []string, err error) {
	if err := o.refuseRemovedFields(); err != nil {
		return nil, err
	}
	read, version := typed, o.GroupVersionKind()
	isOlder := version.Group == resourcev1.GroupName && version.Version != resourcev1.SchemeGroupVersion.Version
	isConverted := isOlder && versions.Recognizes(version)
	switch {
	case isConverted:
		if read, err = versions.New(version); err != nil {
			return nil, o.newError("%w", err)
		}
	case isOlder && version.Kind != "DeviceTaintRule": // of which v1alpha3 has the fields of v1, and more
		return nil, o.newError("apiVersion: %s is not read: write it as %s", o.GetAPIVersion(), resourcev1.SchemeGroupVersion)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, read, true)
	if strict, isStrict := runtime.AsStrictDecodingError(err); isStrict {
		unknown, err = unknownFields(strict.Errors()), nil
	}
	if err != nil {
		return nil, o.newError("%w", o.describeWrongType(read, err))
	}
	if isConverted {
		if err := versions.Convert(read, typed, nil); err != nil {
			return nil, o.newError("convert %s into %s: %w", o.GetAPIVersion(), resourcev1.SchemeGroupVersion, err)
		}
	}
	if object, is := typed.(runtime.Object); is && isOlder {
		object.GetObjectKind().SetGroupVersionKind(resourcev1.SchemeGroupVersion.WithKind(o.GetKind()))
	}
	return unknown, nil
}

// newError returns an error of the object, with its place.
func (o Object) newError(format string, arguments ...any) error {
	return fmt.Errorf("%s"+format, append([]any{o.errorPrefix()}, arguments...)...)
}

// errorPrefix begins the errors of the object.
func (o Object) errorPrefix() string {
	return fmt.Sprintf("%s: %s %q: ", o.Where, o.GetKind(), o.GetName())
}

// Problem is an error of Into or Convert without the place of the object.
func (o Object) Problem(err error) string { return strings.TrimPrefix(err.Error(), o.errorPrefix()) }

var (
	quotedField = regexp.MustCompile(`"(.*)"`)
	listIndex   = regexp.MustCompile(`\[\d+\]`)
)

// unknownFields returns the paths that the errors of strict decoding name, those of list items once.
func unknownFields(errs []error) []string {
	var paths []string
	for _, err := range errs {
		if found := quotedField.FindStringSubmatch(err.Error()); found != nil {
			paths = append(paths, listIndex.ReplaceAllString(found[1], "[]"))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// refuseRemovedFields refuses a Pod of before Kubernetes 1.31. Without its field source it
// would have no claim.
func (o Object) refuseRemovedFields() error {
	path := map[string][]string{"Pod": {"spec"}, "DaemonSet": {"spec", "template", "spec"}}[o.GetKind()]
	if path == nil {
		return nil
	}
	path = append(path, "resourceClaims")
	claims, _, _ := unstructured.NestedSlice(o.Object, path...)
	for i, claim := range claims {
		entry, _ := claim.(map[string]any)
		if _, has := entry["source"]; has {
			return o.newError("%s[%d].source: Kubernetes 1.31 removed this field: write resourceClaimName or resourceClaimTemplateName in its place, beside name",
				strings.Join(path, "."), i)
		}
	}
	return nil
}
