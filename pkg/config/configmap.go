package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// ConfigMap watches one ConfigMap and hands its versions to a Store.
type ConfigMap struct {
	name    string
	store   *Store
	carrier *carrier
	decode  func(*corev1.ConfigMap) (*Documents, error)
	// absent is what it says where there is none.
	absent   content
	informer cached.Informer[*corev1.ConfigMap]
}

// ConfigMapCarrier is the carrier that a ConfigMap is to a Store.
func ConfigMapCarrier(name types.NamespacedName) string {
	return "ConfigMap " + name.String()
}

// NewConfigMap prepares to watch a ConfigMap each of whose values may have several
// documents; Run starts it. Versions that are refused become Warning events on
// it.
//
// Where it does not exist, that says nothing of what should: it may be a typing
// error, or the moment between its deletion and its return. The last good version
// stays in force; who wants to retire everything empties the ConfigMap. At the start
// there is none; then the Store waits for it, unless custom resources are read too.
// Beside them it is one of two places, and may well not be used: the others count,
// but what it may have made stays.
func NewConfigMap(client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) *ConfigMap {
	c := newConfigMap(client, name, store, recorder)
	absent := fmt.Errorf("%s does not exist: create it, empty where it is to have nothing", c.carrier.name)
	c.decode, c.absent = decodeConfigMap, content{broken: absent, required: store.carrier(ObjectsCarrier) == nil}
	return c
}

// ConfigMapFormat is the format of someone else's ConfigMap.
type ConfigMapFormat struct {
	// Adapt turns the texts of a ConfigMap, by their keys, into templates. Its errors begin with
	// the source, which names the ConfigMap.
	Adapt func(source string, texts map[string][]byte) (*Adapted, error)
	// PartOf names the part of the ConfigMap that a template is made of.
	PartOf func(template *v1alpha1.ResourcePoolTemplate) string
}

// NewAdaptedConfigMap prepares to watch a ConfigMap in someone else's format. By their rule its
// end is that of what it says: where it does not exist, nothing is configured.
func NewAdaptedConfigMap(client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder, format ConfigMapFormat) *ConfigMap {
	c := newConfigMap(client, name, store, recorder)
	c.decode, c.absent = format.decode, content{newest: &Documents{}, required: true}
	return c
}

func newConfigMap(client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) *ConfigMap {
	carrier := store.carrier(ConfigMapCarrier(name))
	carrier.recorder = recorder
	informer := coreinformers.NewFilteredConfigMapInformer(client, name.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	})
	return &ConfigMap{name: name.String(), store: store, carrier: carrier, informer: cached.NewInformer[*corev1.ConfigMap](informer, nil)}
}

// onEach calls f on each event.
func onEach[T cache.Object](f func()) cache.TypedResourceEventHandler[T] {
	return cache.TypedResourceEventHandlerFuncs[T]{AddFunc: func(T) { f() }, UpdateFunc: func(_, _ T) { f() }, DeleteFunc: func(cache.DeletedObject[T]) { f() }}
}

// Run watches until ctx ends.
func (c *ConfigMap) Run(ctx context.Context) {
	sync := func() {
		c.store.sync(klog.FromContext(ctx), c.carrier, func() []version { return []version{c.versionOf(c.informer.Get(c.name))} })
	}
	c.informer.Handle(onEach[*corev1.ConfigMap](sync))
	go func() {
		if cache.WaitFor(ctx, "", c.informer.Synced()...) {
			sync() // where there is none, there is no event
		}
	}()
	c.informer.Run(ctx)
}

// versionOf is the newest version, of a ConfigMap or of none. Its texts alone count.
func (c *ConfigMap) versionOf(configMap *corev1.ConfigMap) version {
	if configMap == nil {
		return version{read: func() content { return c.absent }}
	}
	return version{id: fmt.Sprintf("%q %q", configMap.Data, configMap.BinaryData), object: configMap, read: func() content {
		documents, err := c.decode(configMap)
		return content{newest: documents, broken: err, required: true}
	}}
}

// CheckConfigMap reports whether a ConfigMap of own documents would be taken by itself.
func CheckConfigMap(configMap *corev1.ConfigMap) error {
	documents, err := decodeConfigMap(configMap)
	if err == nil {
		_, err = NewSet(documents)
	}
	return err
}

// decodeConfigMap reads a ConfigMap of kwok-dra's own documents.
func decodeConfigMap(configMap *corev1.ConfigMap) (*Documents, error) {
	documents := &Documents{carrier: referToConfigMap(configMap)}
	var errs []error
	texts := textsOf(configMap)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		source := fmt.Sprintf("%s, key %s", carrierOf(configMap), key)
		errs = append(errs, documents.read(source, texts[key]))
	}
	return documents, errors.Join(errs...)
}

// textsOf are the texts of a ConfigMap by their keys. kubectl puts a file that is not UTF-8
// under binaryData, and others put any file there.
func textsOf(configMap *corev1.ConfigMap) map[string][]byte {
	texts := maps.Clone(configMap.BinaryData)
	if texts == nil {
		texts = map[string][]byte{}
	}
	for key, text := range configMap.Data {
		texts[key] = []byte(text)
	}
	return texts
}

func (f ConfigMapFormat) decode(configMap *corev1.ConfigMap) (*Documents, error) {
	origin := devices.Origin{Document: carrierOf(configMap), Carrier: referToConfigMap(configMap)}
	adapted, err := f.Adapt(origin.Document, textsOf(configMap))
	if err != nil {
		return nil, err
	}
	return adopt(origin, adapted, f.PartOf)
}

func carrierOf(configMap *corev1.ConfigMap) string {
	return ConfigMapCarrier(types.NamespacedName{Namespace: configMap.Namespace, Name: configMap.Name})
}

func referToConfigMap(configMap *corev1.ConfigMap) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: configMap.Namespace, Name: configMap.Name, UID: configMap.UID}
}
