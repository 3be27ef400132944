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

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// ConfigMap watches one ConfigMap and hands its versions to a Store.
type ConfigMap struct {
	name    string
	store   *Store
	carrier *carrier
	// format is the format of another program. It is nil for kwok-dra's own documents.
	format *ConfigMapFormat
	// isRequired reports whether nothing is in force while the ConfigMap is missing at the start.
	isRequired bool
	informer   cached.Informer[*corev1.ConfigMap]
}

// ConfigMapCarrier names a ConfigMap as a carrier of a Store.
func ConfigMapCarrier(name types.NamespacedName) string {
	return "ConfigMap " + name.String()
}

// NewConfigMap prepares to watch a ConfigMap with kwok-dra's own documents; Run starts it. A
// refused version is reported as a Warning event on the ConfigMap.
//
// A ConfigMap that does not exist retires nothing: its name may be misspelled, or somebody may
// be replacing it. The last good version stays in force; to retire everything, empty the
// ConfigMap. If it is missing at the start, nothing is in force until it appears, unless the
// Store has custom resources too: then those are in force without it, and what an earlier
// version of the ConfigMap may have made stays.
func NewConfigMap(client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) *ConfigMap {
	informer := coreinformers.NewFilteredConfigMapInformer(client, name.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	})
	carrier := store.carrierNamed(ConfigMapCarrier(name))
	carrier.recorder = recorder
	isRequired := store.carrierNamed(ObjectsCarrier) == nil
	return &ConfigMap{name.String(), store, carrier, nil, isRequired, cached.NewInformer[*corev1.ConfigMap](informer, nil)}
}

// ConfigMapFormat is the format of another program's ConfigMap.
type ConfigMapFormat struct {
	// Adapt turns the texts of a ConfigMap, by their keys, into templates. Its errors begin with
	// the source, which names the ConfigMap.
	Adapt func(source string, texts map[string][]byte) (*Adapted, error)
	// PartOf names the part of the ConfigMap that a template is made of.
	PartOf func(template *v1alpha1.ResourcePoolTemplate) string
}

// NewAdaptedConfigMap prepares to watch a ConfigMap in another program's format. By the rule of
// these programs a missing ConfigMap configures nothing, so deleting it retires its pools.
func NewAdaptedConfigMap(client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder, format ConfigMapFormat) *ConfigMap {
	c := NewConfigMap(client, name, store, recorder)
	c.format = &format
	return c
}

// Run watches until ctx ends.
func (c *ConfigMap) Run(ctx context.Context) {
	sync := func() {
		c.store.syncCarrier(klog.FromContext(ctx), c.carrier, func() []*source { return []*source{c.sourceOf(c.informer.Get(c.name))} })
	}
	c.informer.Handle(cache.TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
		AddFunc:    func(*corev1.ConfigMap) { sync() },
		UpdateFunc: func(_, _ *corev1.ConfigMap) { sync() },
		DeleteFunc: func(cache.DeletedObject[*corev1.ConfigMap]) { sync() },
	})
	go func() {
		if cache.WaitFor(ctx, "", c.informer.Synced()...) {
			sync() // a ConfigMap that does not exist causes no event
		}
	}()
	c.informer.Run(ctx)
}

// sourceOf makes a source of the ConfigMap, or of nil if it does not exist. Its texts are its
// version, so edits of labels and annotations do not count. kubectl stores a file that is not
// UTF-8 under binaryData, and other tools store any file there.
func (c *ConfigMap) sourceOf(configMap *corev1.ConfigMap) *source {
	if configMap == nil {
		return &source{decode: func(s *source) {
			if c.format != nil {
				s.newest, s.required = &Documents{}, true
				return
			}
			s.decodeErr = fmt.Errorf("%s does not exist: create it, empty where it is to have nothing", c.carrier.name)
			s.required = c.isRequired
		}}
	}
	return &source{version: fmt.Sprintf("%q %q", configMap.Data, configMap.BinaryData), object: configMap, decode: func(s *source) {
		origin := devices.Origin{
			Document: "ConfigMap " + configMap.Namespace + "/" + configMap.Name,
			Carrier:  &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: configMap.Namespace, Name: configMap.Name, UID: configMap.UID},
		}
		texts := maps.Clone(configMap.BinaryData)
		if texts == nil {
			texts = map[string][]byte{}
		}
		for key, text := range configMap.Data {
			texts[key] = []byte(text)
		}
		s.required = true
		if c.format != nil {
			adapted, err := c.format.Adapt(origin.Document, texts)
			if s.decodeErr = err; err == nil {
				s.newest, s.decodeErr = compileAdapted(origin, adapted, c.format.PartOf)
			}
			return
		}
		s.newest = &Documents{carrier: origin.Carrier}
		var errs []error
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			errs = append(errs, s.newest.decodeText(fmt.Sprintf("%s, key %s", origin.Document, key), texts[key]))
		}
		s.decodeErr = errors.Join(errs...)
	}}
}
