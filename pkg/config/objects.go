package config

import (
	"cmp"
	"context"
	"maps"
	"slices"

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
	// onChange is called when what was accepted may have changed.
	onChange func()

	// objects are guarded by the store's lock.
	objects map[objectKey]*object
}

// objectKey identifies an object; they are in the cluster, not in a namespace.
type objectKey struct{ kind, name string }

type object struct {
	source
	object *unstructured.Unstructured
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
	store.carriers[ObjectsCarrier] = &state{}
	return &Objects{store: store, recorder: recorder, onChange: onChange, objects: map[objectKey]*object{}}
}

// Take takes an object's new version.
func (o *Objects) Take(ctx context.Context, source *unstructured.Unstructured) {
	if !o.isNew(ctx, source) {
		o.onChange() // its status may be another
		return
	}
	o.change(func() {})
}

// Drop notes that an object is gone.
func (o *Objects) Drop(_ context.Context, kind, name string) {
	o.change(func() { delete(o.objects, objectKey{kind, name}) })
}

// Replace takes all objects there are of some kinds, at the start or when
// custom resource definitions have come or gone. Each kind is listed while nobody
// else takes or drops objects. Nothing is in force before the first Replace.
func (o *Objects) Replace(ctx context.Context, byKind map[string]func() []*unstructured.Unstructured) {
	o.change(func() {
		listed := map[objectKey]bool{}
		for _, list := range byKind {
			for _, source := range list() {
				listed[keyOf(source)] = true
				o.note(ctx, source)
			}
		}
		maps.DeleteFunc(o.objects, func(key objectKey, _ *object) bool {
			_, given := byKind[key.kind]
			return given && !listed[key]
		})
		o.store.carriers[ObjectsCarrier].known = true
	})
}

// change changes the objects, and has the store work out what is in force.
func (o *Objects) change(f func()) {
	o.store.change(ObjectsCarrier, func(c *state) {
		f()
		c.sources = c.sources[:0]
		for _, key := range slices.SortedFunc(maps.Keys(o.objects), o.byAge) {
			c.sources = append(c.sources, &o.objects[key].source)
		}
	})
	o.onChange()
}

// byAge orders objects: of two that contradict each other the older one wins.
func (o *Objects) byAge(a, b objectKey) int {
	one, other := o.objects[a].object.GetCreationTimestamp(), o.objects[b].object.GetCreationTimestamp()
	return cmp.Or(one.Compare(other.Time), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
}

func keyOf(source *unstructured.Unstructured) objectKey {
	return objectKey{source.GetKind(), source.GetName()}
}

func (o *Objects) isNew(ctx context.Context, source *unstructured.Unstructured) bool {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	return o.note(ctx, source)
}

// note decodes an object's new version, and reports whether it is one: what differs
// in its status only is not.
func (o *Objects) note(ctx context.Context, source *unstructured.Unstructured) bool {
	key := keyOf(source)
	current := o.objects[key]
	if current == nil || current.object.GetUID() != source.GetUID() {
		current = &object{}
		current.early = !o.store.carriers[ObjectsCarrier].known
		o.objects[key] = current
	}
	kind, known := kindNamed(key.kind)
	last := current.object
	current.object = source
	if !known || last != nil && kind.version(last) == kind.version(source) {
		return false
	}
	current.changed = true
	current.newest, current.broken = kind.decode(source)
	// What says when is not replaced by its defaults. One that contradicts an older
	// one was not in force before either.
	current.required = current.broken != nil && key.kind == v1alpha1.KwokDRAConfigurationKind
	current.tell = func(err error) {
		klog.FromContext(ctx).Error(err, "Refused an object, its last good version stays in force", "object", klog.KObj(source))
		o.recorder.Event(source, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, v1alpha1.EventMessage(err))
	}
	if current.broken != nil {
		current.newest = nil
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

// Acceptance is what became of each object of a kind, by name.
func (o *Objects) Acceptance(kind string) map[string]Acceptance {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	all := map[string]Acceptance{}
	for key, object := range o.objects {
		if key.kind != kind {
			continue
		}
		acceptance := Acceptance{Generation: object.object.GetGeneration(), Err: object.refused, Source: object.object, Templates: object.good.templateNames()}
		if kind == v1alpha1.ResourcePoolTemplateKind {
			acceptance.Status = statusOf(object.object)
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
