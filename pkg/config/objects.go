package config

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	store    *Store
	recorder record.EventRecorder
	// onChange is called when what was accepted has changed.
	onChange func()

	mu      sync.Mutex
	objects map[objectKey]*object
}

// objectKey identifies an object; they are in the cluster, not in a namespace.
type objectKey struct{ kind, name string }

type object struct {
	source *unstructured.Unstructured
	// newest is the newest version, nil where it does not pass by itself. The good
	// one is in force.
	newest, good *Documents
	// err is why the newest version is not in force.
	err error
	// told is what was told of the newest version, though it is in force.
	told string
}

// Acceptance tells whether the newest version of an object is in force.
type Acceptance struct {
	// Generation is that of the newest version.
	Generation int64
	// Err is why it is not, or nil.
	Err error
	// Status is what a ResourcePoolTemplate shows.
	Status v1alpha1.ResourcePoolTemplateStatus
	// Source is the newest version. It is not to be written to.
	Source *unstructured.Unstructured
	// Templates are the names of those of the version that is in force.
	Templates []string
}

// NewObjects makes a carrier without objects; Replace, Take and Drop fill it.
func NewObjects(store *Store, recorder record.EventRecorder, onChange func()) *Objects {
	return &Objects{store: store, recorder: recorder, onChange: onChange, objects: map[objectKey]*object{}}
}

// Take takes an object's new version.
func (o *Objects) Take(ctx context.Context, source *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.note(ctx, source) {
		o.settle(ctx)
		return
	}
	o.onChange() // its status may be another
}

// Drop notes that an object is gone.
func (o *Objects) Drop(ctx context.Context, kind, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.objects, objectKey{kind, name})
	o.settle(ctx)
}

// Replace takes all objects there are of some kinds, at the start or when
// custom resource definitions have come or gone.
func (o *Objects) Replace(ctx context.Context, byKind map[string][]*unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	listed := map[objectKey]bool{}
	for _, sources := range byKind {
		for _, source := range sources {
			listed[keyOf(source)] = true
			o.note(ctx, source)
		}
	}
	maps.DeleteFunc(o.objects, func(key objectKey, _ *object) bool {
		_, given := byKind[key.kind]
		return given && !listed[key]
	})
	o.settle(ctx)
}

func keyOf(source *unstructured.Unstructured) objectKey {
	return objectKey{source.GetKind(), source.GetName()}
}

// note decodes an object's new version, and tells whether it is one: what differs
// in its status only is not.
func (o *Objects) note(ctx context.Context, source *unstructured.Unstructured) bool {
	key := keyOf(source)
	current := o.objects[key]
	if current == nil || current.source.GetUID() != source.GetUID() {
		current = &object{}
		o.objects[key] = current
	}
	kind, known := kindNamed(key.kind)
	last := current.source
	current.source = source
	if !known || last != nil && kind.version(last) == kind.version(source) {
		return false
	}
	current.newest, current.err = kind.decode(source)
	if current.err != nil {
		current.newest = nil
		o.refused(ctx, current)
		return true
	}
	if changes := current.newest.normalized(); changes != current.told {
		current.told = changes
		o.tell(source, changes)
	}
	return true
}

// tell tells what of an object is not taken as it is written, if anything.
func (o *Objects) tell(source *unstructured.Unstructured, changes string) {
	if changes != "" {
		o.recorder.Event(source, corev1.EventTypeWarning, v1alpha1.ReasonNormalized, changes)
	}
}

// settle puts all newest versions in force. Where they contradict each other or
// another carrier, those that do are refused.
func (o *Objects) settle(ctx context.Context) {
	defer o.onChange()
	chosen := map[objectKey]*Documents{}
	for key, object := range o.objects {
		chosen[key] = object.good
		if object.newest != nil {
			chosen[key] = object.newest
		}
	}
	if o.replace(ctx, chosen) != nil {
		o.settleOneByOne(ctx, chosen)
	}
	for key, object := range o.objects {
		object.good = chosen[key]
		if object.newest != nil && object.good == object.newest {
			object.err = nil
		}
	}
}

// settleOneByOne starts from what is in force, and takes the newest versions that
// fit.
func (o *Objects) settleOneByOne(ctx context.Context, chosen map[objectKey]*Documents) {
	for key, object := range o.objects {
		chosen[key] = object.good
	}
	_ = o.replace(ctx, chosen) // without those that are gone
	for _, key := range slices.SortedFunc(maps.Keys(o.objects), byKindAndName) {
		object := o.objects[key]
		if object.newest == nil || object.newest == object.good {
			continue
		}
		chosen[key] = object.newest
		err := o.replace(ctx, chosen)
		if err == nil {
			continue
		}
		chosen[key] = object.good
		known := object.err != nil && object.err.Error() == err.Error()
		object.err = err
		if !known {
			o.refused(ctx, object)
		}
	}
}

func byKindAndName(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

func (o *Objects) replace(ctx context.Context, chosen map[objectKey]*Documents) error {
	all := &Documents{}
	for _, key := range slices.SortedFunc(maps.Keys(chosen), byKindAndName) {
		if chosen[key] != nil {
			all.merge(chosen[key])
		}
	}
	err := o.store.Replace(ObjectsCarrier, all)
	if err == nil {
		klog.FromContext(ctx).V(2).Info("Took the custom resources", "objects", len(chosen))
	}
	return err
}

// refused tells of a version that is refused.
func (o *Objects) refused(ctx context.Context, object *object) {
	o.store.metrics.bad(ObjectsCarrier)
	klog.FromContext(ctx).Error(object.err, "Refused an object, its last good version stays in force", "object", klog.KObj(object.source))
	o.recorder.Event(object.source, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, v1alpha1.EventMessage(object.err))
}

// Acceptance is what became of each object of a kind, by name.
func (o *Objects) Acceptance(kind string) map[string]Acceptance {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]Acceptance{}
	for key, object := range o.objects {
		if key.kind != kind {
			continue
		}
		acceptance := Acceptance{Generation: object.source.GetGeneration(), Err: object.err, Source: object.source, Templates: object.good.templateNames()}
		if kind == v1alpha1.ResourcePoolTemplateKind {
			acceptance.Status = statusOf(object.source)
		}
		all[key.name] = acceptance
	}
	return all
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

// statusOf reads the status that an object has, or none where it has something
// else there.
func statusOf(source *unstructured.Unstructured) v1alpha1.ResourcePoolTemplateStatus {
	var status v1alpha1.ResourcePoolTemplateStatus
	if given, is, err := unstructured.NestedMap(source.Object, "status"); is && err == nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(given, &status)
	}
	return status
}
