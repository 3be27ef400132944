package story

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"
)

// kind says how objects of a kind are reached.
type kind struct {
	resource     string
	isNamespaced bool
	make         func() Object
}

// kinds are those that stories have.
var kinds = map[string]kind{
	"Namespace":             {"namespaces", false, func() Object { return &corev1.Namespace{} }},
	"ServiceAccount":        {"serviceaccounts", true, func() Object { return &corev1.ServiceAccount{} }},
	"Node":                  {"nodes", false, func() Object { return &corev1.Node{} }},
	"Pod":                   {"pods", true, func() Object { return &corev1.Pod{} }},
	"PodGroup":              {"podgroups", true, func() Object { return &schedulingv1beta1.PodGroup{} }},
	"ResourceQuota":         {"resourcequotas", true, func() Object { return &corev1.ResourceQuota{} }},
	"PriorityClass":         {"priorityclasses", false, func() Object { return &schedulingv1.PriorityClass{} }},
	"DeviceClass":           {"deviceclasses", false, func() Object { return &resourcev1.DeviceClass{} }},
	"ResourceSlice":         {"resourceslices", false, func() Object { return &resourcev1.ResourceSlice{} }},
	"DeviceTaintRule":       {"devicetaintrules", false, func() Object { return &resourcev1.DeviceTaintRule{} }},
	"ResourceClaim":         {"resourceclaims", true, func() Object { return &resourcev1.ResourceClaim{} }},
	"ResourceClaimTemplate": {"resourceclaimtemplates", true, func() Object { return &resourcev1.ResourceClaimTemplate{} }},
}

// refTo names an object.
func refTo(object Object) Ref {
	version, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return Ref{APIVersion: version, Kind: kind, Name: object.GetName()}
}

// resourceOf returns what a client calls the kind of an object.
func (r Ref) resourceOf() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(r.APIVersion)
	return gv.WithResource(kinds[r.Kind].resource)
}

// Objects are objects of the kinds that stories have.
type Objects []Object

func (o Objects) deepCopy() Objects {
	var all Objects
	for _, object := range o {
		all = append(all, object.DeepCopyObject().(Object))
	}
	return all
}

// MarshalJSON leaves out what is empty.
func (o Objects) MarshalJSON() ([]byte, error) {
	all := make([]map[string]any, len(o))
	for i, object := range o {
		content, err := contentOf(object)
		if err != nil {
			return nil, err
		}
		all[i] = content
	}
	return json.Marshal(all)
}

// contentOf returns the fields of an object that are set.
func contentOf(object Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	removeEmpty(content)
	if status, isMap := content["status"].(map[string]any); isMap && content["kind"] == "Node" {
		delete(status, "nodeInfo")
		delete(status, "daemonEndpoints")
	}
	return content, nil
}

// removeEmpty removes what has no value, and structs without fields, below the fields of an object.
func removeEmpty(content map[string]any) {
	for field, value := range content {
		removeNulls(value)
		if fields, isMap := value.(map[string]any); value == nil || isMap && len(fields) == 0 {
			delete(content, field)
		}
	}
}

// removeNulls removes what has no value at any depth.
func removeNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if inner == nil {
				delete(value, key)
				continue
			}
			removeNulls(inner)
		}
	case []any:
		for _, inner := range value {
			removeNulls(inner)
		}
	}
}

// UnmarshalJSON reads objects by their kinds.
func (o *Objects) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, raw := range all {
		var typed struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(raw, &typed); err != nil {
			return err
		}
		k, isKnown := kinds[typed.Kind]
		if !isKnown {
			return fmt.Errorf("read kind %q: no story has objects of it", typed.Kind)
		}
		object := k.make()
		strict, err := sigsjson.UnmarshalStrict(raw, object)
		if err != nil {
			return fmt.Errorf("read %s: %w", typed.Kind, err)
		}
		if len(strict) > 0 {
			return fmt.Errorf("read %s: %w", typed.Kind, strict[0])
		}
		*o = append(*o, object)
	}
	return nil
}
