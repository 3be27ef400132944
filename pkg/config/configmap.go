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

// reasonInvalid is the reason of the event on a ConfigMap that is refused.
const reasonInvalid = "InvalidConfiguration"

// ConfigMap watches one ConfigMap and hands its versions to a Store. Each value
// of its data may have several documents. A ConfigMap that does not exist says
// nothing: the last good version stays in force.
type ConfigMap struct {
	name     types.NamespacedName
	store    *Store
	recorder record.EventRecorder
	informer coreinformers.ConfigMapIndexInformer
	synced   cache.DoneChecker

	mu    sync.Mutex
	known bool
}

// ConfigMapCarrier is the carrier that a ConfigMap is to a Store.
func ConfigMapCarrier(name types.NamespacedName) string {
	return "ConfigMap " + name.String()
}

// NewConfigMap prepares to watch the ConfigMap; Run starts it. Versions that
// are refused become Warning events on it.
func NewConfigMap(ctx context.Context, client kubernetes.Interface, name types.NamespacedName, store *Store, recorder record.EventRecorder) (*ConfigMap, error) {
	c := &ConfigMap{name: name, store: store, recorder: recorder}
	c.informer = coreinformers.NewTypedFilteredConfigMapInformer(client, name.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	})
	handler, err := c.informer.AddTypedEventHandler(coreinformers.ConfigMapHandlerFuncs{
		AddFunc: func(configMap *corev1.ConfigMap) { c.take(ctx, configMap) },
		UpdateFunc: func(old, configMap *corev1.ConfigMap) {
			if !maps.Equal(old.Data, configMap.Data) {
				c.take(ctx, configMap)
			}
		},
		DeleteFunc: func(coreinformers.DeletedConfigMap) { c.takeNone(ctx) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", ConfigMapCarrier(name), err)
	}
	c.synced = handler.HasSyncedChecker()
	return c, nil
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
	documents, err := c.decode(configMap.Data)
	if err == nil {
		err = c.store.Replace(ConfigMapCarrier(c.name), documents)
	}
	if err != nil {
		logger.Error(err, "Refused the configuration, the last good one stays in force")
		c.store.metrics.bad(ConfigMapCarrier(c.name))
		c.recorder.Event(configMap, corev1.EventTypeWarning, reasonInvalid, v1alpha1.EventMessage(err))
		return
	}
	logger.Info("Took the configuration", "resourceVersion", configMap.ResourceVersion, "templates", len(documents.templates))
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
// return. Who wants to retire everything empties the ConfigMap.
func (c *ConfigMap) takeNone(ctx context.Context) {
	c.store.metrics.missing(ConfigMapCarrier(c.name))
	klog.FromContext(ctx).Error(nil, "The ConfigMap does not exist; what is published stays as it is", "configMap", c.name)
}

func (c *ConfigMap) decode(data map[string]string) (*Documents, error) {
	documents := &Documents{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		read, err := Decode(fmt.Sprintf("%s, key %s", ConfigMapCarrier(c.name), key), []byte(data[key]))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents.merge(read)
	}
	return documents, errors.Join(errs...)
}
