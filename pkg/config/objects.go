package config

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ObjectsCarrier is the carrier of the custom resources.
const ObjectsCarrier = "custom resources"

// Objects are the custom resources of a cluster, as they come and go. Each
// stands for itself: where a version is refused, that object's last good version
// stays in force, and the others are as they are.
type Objects struct {
	store   *Store
	carrier *carrier
	// onChange is called when what was accepted may have changed.
	onChange func()
}

// NewObjects makes the carrier of a Store, which Replace fills.
func NewObjects(store *Store, recorder record.EventRecorder, onChange func()) *Objects {
	o := &Objects{store: store, carrier: store.carrier(ObjectsCarrier), onChange: onChange}
	o.carrier.recorder = recorder
	return o
}

// Replace takes all objects there are now. They are listed while nobody else takes
// any. Nothing is in force before the first Replace.
func (o *Objects) Replace(ctx context.Context, list func() []*unstructured.Unstructured) {
	o.store.sync(klog.FromContext(ctx), o.carrier, func() []version {
		var all []version
		for _, object := range list() {
			if kind, known := kindNamed(object.GetKind()); known {
				all = append(all, kind.versionOf(object))
			}
		}
		return all
	})
	o.onChange()
}

// versionOf is an object's newest version. What differs in its status only is not
// another one.
func (k Kind) versionOf(object *unstructured.Unstructured) version {
	id := fmt.Sprint(object.GetGeneration())
	if k.annotation != "" {
		id += " " + object.GetAnnotations()[k.annotation]
	}
	return version{
		key:    key{k.Name, object.GetName(), object.GetUID()},
		id:     id,
		object: object,
		read: func() content {
			documents, err := k.decode(object)
			// What says when is not replaced by its defaults. One that contradicts an older
			// one was not in force before either.
			return content{newest: documents, broken: err, required: err != nil && k.Name == v1alpha1.KwokDRAConfigurationKind}
		},
	}
}

// templateNames are those of the documents' templates. There may be no documents.
func (d *Documents) templateNames() []string {
	if d == nil {
		return nil
	}
	names := make([]string, len(d.templates))
	for i := range d.templates {
		names[i] = d.templates[i].value.Name
	}
	return names
}
