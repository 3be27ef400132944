package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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
)

// ConfigMap watches one ConfigMap and hands its versions to a Store.
type ConfigMap struct {
	name   types.NamespacedName
	decode func(*corev1.ConfigMap) (*Documents, error)
	// optional tells that where there is no ConfigMap nothing is configured.
	optional bool
	store    *Store
	recorder record.EventRecorder
	informer coreinformers.ConfigMapIndexInformer
	synced   cache.DoneChecker

	mu    sync.Mutex
	known bool
	// told is what was told of the version in force.
	told string
}

// ConfigMapCarrier is the carrier that a ConfigMap is to a Store.
func ConfigMapCarrier(name types.NamespacedName) string {
	return "ConfigMap " + name.String()
}

// NewConfigMap prepares to watch a ConfigMap each of whose values may have several
// documents; Run starts it. Versions that are refused become Warning events on
// it. A ConfigMap that does not exist says nothing: the last good version stays in
// force. At the start there is none; then the Store waits for it, unless custom
// resources are read too.
func NewConfigMap(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) (*ConfigMap, error) {
	c := &ConfigMap{name: name, decode: decodeConfigMap, store: store, recorder: recorder}
	return c, c.watch(ctx, client)
}

// NewAdaptedConfigMap prepares to watch a ConfigMap in the format of
// dra-kwok-configmap. Where it does not exist, nothing is configured.
func NewAdaptedConfigMap(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) (*ConfigMap, error) {
	c := &ConfigMap{name: name, decode: decodeAdaptedConfigMap, optional: true, store: store, recorder: recorder}
	return c, c.watch(ctx, client)
}

func (c *ConfigMap) watch(ctx context.Context, client kubernetes.Interface) error {
	c.informer = coreinformers.NewTypedFilteredConfigMapInformer(client, c.name.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.name.Name).String()
	})
	handler, err := c.informer.AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		AddFunc: func(configMap *corev1.ConfigMap) { c.take(ctx, configMap) },
		UpdateFunc: func(old, configMap *corev1.ConfigMap) {
			if !maps.Equal(old.Data, configMap.Data) {
				c.take(ctx, configMap)
			}
		},
		DeleteFunc: func(coreinformers.DeletedConfigMap) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.takeNone(ctx)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", ConfigMapCarrier(c.name), err)
	}
	c.synced = handler.HasSyncedChecker()
	return nil
}

// Run watches until ctx ends.
func (c *ConfigMap) Run(ctx context.Context) {
	go func() {
		if cache.WaitFor(ctx, "", c.synced) && len(c.informer.GetStore().ListKeys()) == 0 {
			c.takeAbsent(ctx)
		}
	}()
	c.informer.RunWithContext(ctx)
}

// Synced is done when the first version has been taken or refused.
func (c *ConfigMap) Synced() cache.DoneChecker {
	return c.synced
}

func (c *ConfigMap) take(ctx context.Context, configMap *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = true
	logger := klog.FromContext(ctx).WithValues("configMap", klog.KObj(configMap))
	documents, err := c.decode(configMap)
	if err != nil {
		documents = nil
	}
	refused := c.store.take(ConfigMapCarrier(c.name), version{newest: documents, broken: err, tell: func(err error) {
		logger.Error(err, "Refused the configuration, the last good one stays in force")
		c.recorder.Event(configMap, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, v1alpha1.EventMessage(err))
	}})
	if refused != nil {
		return
	}
	logger.Info("Took the configuration", "resourceVersion", configMap.ResourceVersion, "templates", len(documents.templates))
	if changes := documents.normalized(); changes != c.told {
		c.told = changes
		c.tell(configMap)
	}
}

// tell tells what is not taken as it is written, if anything.
func (c *ConfigMap) tell(configMap *corev1.ConfigMap) {
	if c.told != "" {
		c.recorder.Event(configMap, corev1.EventTypeWarning, v1alpha1.ReasonNormalized, c.told)
	}
}

// takeAbsent notes that there was no ConfigMap at the start, unless one has come
// since.
func (c *ConfigMap) takeAbsent(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.takeNone(ctx)
	}
}

// takeNone notes that there is no ConfigMap. That says nothing of what should
// exist: it may be a typing error, or the moment between its deletion and its
// return. Who wants to retire everything empties the ConfigMap. Beside custom
// resources it is one of two places, and may well not be used: where no version of
// it is known, the others count, but what it may have made stays. An optional one is
// other people's, and by their rule its end is that of what it says.
func (c *ConfigMap) takeNone(ctx context.Context) {
	c.told = ""
	if !c.optional {
		absent := fmt.Errorf("%s does not exist: create it, empty where it is to have nothing", ConfigMapCarrier(c.name))
		c.store.missing(ConfigMapCarrier(c.name), absent, !c.store.has(ObjectsCarrier))
		klog.FromContext(ctx).Error(nil, "The ConfigMap does not exist; what is published stays as it is", "configMap", c.name)
		return
	}
	if err := c.store.Replace(ConfigMapCarrier(c.name), &Documents{}); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot do without the ConfigMap", "configMap", c.name)
		return
	}
	klog.FromContext(ctx).Info("The ConfigMap does not exist; nothing is configured there", "configMap", c.name)
}

// CheckConfigMap tells whether a ConfigMap of kwok-dra's own documents would be
// taken by itself.
func CheckConfigMap(configMap *corev1.ConfigMap) error {
	documents, err := decodeConfigMap(configMap)
	if err == nil {
		_, err = NewSet(documents)
	}
	return err
}

// decodeConfigMap reads a ConfigMap of kwok-dra's own documents.
func decodeConfigMap(configMap *corev1.ConfigMap) (*Documents, error) {
	carrier := ConfigMapCarrier(types.NamespacedName{Namespace: configMap.Namespace, Name: configMap.Name})
	documents := &Documents{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		read, err := Decode(fmt.Sprintf("%s, key %s", carrier, key), []byte(configMap.Data[key]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents.merge(read)
	}
	documents.carriedBy(referToConfigMap(configMap))
	return documents, errors.Join(errs...)
}

func referToConfigMap(configMap *corev1.ConfigMap) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: configMap.Namespace, Name: configMap.Name, UID: configMap.UID}
}
