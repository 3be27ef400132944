package classes

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/installation"
	"github.com/kwok-dra/kwok-dra/internal/controller/loop"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// droppedFieldRetryInterval is how often a field that the API server dropped is written again, in
// case it keeps the field now.
const droppedFieldRetryInterval = 30 * time.Second

// A class that another program keeps changing back is written again after a delay that doubles
// from minRewriteDelay to maxRewriteDelay.
const (
	minRewriteDelay = 25 * time.Millisecond
	maxRewriteDelay = 30 * time.Minute
)

// Keeper keeps the DeviceClasses.
type Keeper struct {
	client   resourceclient.DeviceClassInterface
	config   *config.Store
	owner    *shard.Owner
	recorder record.EventRecorder
	classes  cached.Informer[*resourcev1.DeviceClass]
	// rewrites delays writes of a class, by how often it was written since the configuration
	// changed.
	rewrites *flowcontrol.Backoff
	// loop has one worker, which owns the maps below.
	loop *loop.Loop[string]
	// reported maps wanted classes to the last message about them.
	reported map[string]string
	// droppedAt maps wanted classes to when the API server last dropped a field of them.
	droppedAt map[string]time.Time
	// retired has unwanted classes without a record. A version before records made them; if such
	// a class comes back, that version still runs. An entry ends maxRewriteDelay after its class.
	retired map[string]retiredClass
}

// retiredClass is a class that became unwanted.
type retiredClass struct {
	uid types.UID
	at  time.Time
}

// New makes a Keeper; Run starts it. It writes while the owner leads.
func New(client kubernetes.Interface, store *config.Store, owner *shard.Owner, recorder record.EventRecorder) *Keeper {
	k := &Keeper{
		client:    client.ResourceV1().DeviceClasses(),
		config:    store,
		owner:     owner,
		recorder:  recorder,
		classes:   cached.NewInformer[*resourcev1.DeviceClass](resourceinformers.NewDeviceClassInformer(client, 0, nil), nil),
		reported:  map[string]string{},
		droppedAt: map[string]time.Time{},
		retired:   map[string]retiredClass{},
		rewrites:  flowcontrol.NewBackOff(minRewriteDelay, maxRewriteDelay),
	}
	k.loop = loop.New("classes", k.reconcileClass)
	store.OnChange(k.configChanged)
	owner.OnChange(func(string) {}, k.enqueueClasses)
	k.classes.Handle(cache.TypedResourceEventHandlerFuncs[*resourcev1.DeviceClass]{
		AddFunc:    func(class *resourcev1.DeviceClass) { k.loop.Add(class.Name) },
		UpdateFunc: func(_, class *resourcev1.DeviceClass) { k.loop.Add(class.Name) },
		DeleteFunc: func(deleted cache.DeletedObject[*resourcev1.DeviceClass]) { k.loop.Add(deleted.GetObjectName().Name) },
	})
	return k
}

// CheckHealth returns an error if the Keeper's loop is stuck.
func (k *Keeper) CheckHealth() error {
	return k.loop.CheckHealth()
}

// Synced is done when the cache is complete.
func (k *Keeper) Synced() []cache.DoneChecker {
	return k.classes.Synced()
}

// Run keeps the classes until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { k.classes.Run(ctx) })
	cache.WaitFor(ctx, "", k.Synced()...)
	k.loop.Run(ctx, 1) // even if ctx has ended, to shut down the queue
	running.Wait()
}

func (k *Keeper) configChanged() {
	if set := k.config.Current(); set != nil {
		for i := range set.Classes {
			k.rewrites.Reset(set.Classes[i].Name)
		}
	}
	k.enqueueClasses()
}

// enqueueClasses queues the classes that exist, and those that should.
func (k *Keeper) enqueueClasses() {
	for _, name := range k.classes.Keys() {
		k.loop.Add(name)
	}
	if set := k.config.Current(); set != nil {
		for i := range set.Classes {
			k.loop.Add(set.Classes[i].Name)
		}
	}
}

// reconcileClass brings one class up to date.
func (k *Keeper) reconcileClass(ctx context.Context, name string) error {
	set := k.config.Current()
	if set == nil || !k.owner.Leads() {
		return nil
	}
	var want *config.Class
	for i := range set.Classes {
		if set.Classes[i].Name == name {
			want = &set.Classes[i]
		}
	}
	existing := k.classes.Get(name)
	k.forgetUnwanted(name, want, existing)
	next := planClass(k.owner.Installation(), want, existing, time.Since(k.droppedAt[name]) >= droppedFieldRetryInterval)
	switch {
	case next.verb == remove && !k.mayRetire(existing):
		return nil
	case next.verb == leave:
		k.reportProblem(ctx, want, name, v1alpha1.ReasonDeviceClassNotManaged, k.notManagedError(existing))
	}
	if wait := k.rewrites.Get(name); (next.verb == create || next.verb == update) && k.rewrites.IsInBackOffSinceUpdate(name, time.Now()) {
		k.loop.AddAfter(name, wait)
		return nil
	}
	err := k.applyStep(ctx, want, next)
	if err != nil && want != nil && !loop.LostRace(err) && k.loop.NumRequeues(name) >= loop.FailuresBeforeEvent {
		k.reportProblem(ctx, want, name, v1alpha1.ReasonDeviceClassFailed, err)
	}
	return err
}

// forgetUnwanted drops what is remembered of an unwanted class, and of one that was retired long
// ago or is wanted again.
func (k *Keeper) forgetUnwanted(name string, want *config.Class, existing *resourcev1.DeviceClass) {
	if want == nil {
		delete(k.reported, name)
		delete(k.droppedAt, name)
	}
	retired, isRetired := k.retired[name]
	switch left := maxRewriteDelay - time.Since(retired.at); {
	case !isRetired || existing != nil && want == nil:
	case want == nil && left > 0:
		k.loop.AddAfter(name, left)
	default:
		delete(k.retired, name)
	}
}

// notManagedError says why a wanted class is left alone.
func (k *Keeper) notManagedError(existing *resourcev1.DeviceClass) error {
	as, owner := k.owner.Installation(), installation.Of(existing)
	if as.IsAnother(owner) {
		return &installation.OwnedError{Object: "DeviceClass " + existing.Name, Resource: "deviceclass " + existing.Name, Owner: owner, As: as}
	}
	return fmt.Errorf("DeviceClass %s was not created by kwok-dra, which leaves it alone: Pods get what it selects; delete it, and kwok-dra creates its own", existing.Name)
}

// mayRetire reports whether an unwanted class may be deleted: a class without a record only once.
func (k *Keeper) mayRetire(existing *resourcev1.DeviceClass) bool {
	if k.owner.Installation() == "" || installation.Of(existing) != "" {
		return true
	}
	if _, isRetired := k.retired[existing.Name]; !isRetired {
		k.retired[existing.Name] = retiredClass{existing.UID, time.Now()}
	}
	return k.retired[existing.Name].uid == existing.UID
}

// applyStep makes the API call of a step.
func (k *Keeper) applyStep(ctx context.Context, want *config.Class, next step) error {
	var stored *resourcev1.DeviceClass
	var err error
	switch next.verb {
	case create:
		stored, err = k.client.Create(ctx, next.class, metav1.CreateOptions{})
	case update:
		stored, err = k.client.Update(ctx, next.class, metav1.UpdateOptions{})
	case remove:
		// The preconditions keep a class that has changed since it was cached.
		unchanged := &metav1.Preconditions{UID: new(next.class.UID), ResourceVersion: new(next.class.ResourceVersion)}
		err = k.client.Delete(ctx, next.class.Name, metav1.DeleteOptions{Preconditions: unchanged})
		if apierrors.IsNotFound(err) {
			return nil
		}
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s DeviceClass %s: %w", next.verb, next.class.Name, err)
	}
	k.rewrites.Next(next.class.Name, time.Now())
	k.rewrites.GC()
	klog.FromContext(ctx).Info("Updated a DeviceClass", "deviceClass", next.class.Name, "verb", next.verb)
	if stored != nil {
		k.checkStored(ctx, want, next.class, stored)
	}
	return nil
}

// checkStored reports a field that the API server dropped, and has it written again later.
func (k *Keeper) checkStored(ctx context.Context, want *config.Class, sent, stored *resourcev1.DeviceClass) {
	if !dropsExtendedResource(sent, stored) {
		delete(k.reported, sent.Name)
		return
	}
	k.droppedAt[sent.Name] = time.Now()
	k.rewrites.Reset(sent.Name) // no other program changes it back
	k.loop.AddAfter(sent.Name, droppedFieldRetryInterval)
	k.reportProblem(ctx, want, sent.Name, v1alpha1.ReasonFieldsDropped, fmt.Errorf(
		"the API server drops extendedResourceName %s of DeviceClass %s, so Pods that ask for it as an extended resource remain Pending: turn on its feature gate DRAExtendedResource, or use ResourceClaims",
		*sent.Spec.ExtendedResourceName, sent.Name))
}

// reportProblem emits one event about a problem, on the object that needs the class.
func (k *Keeper) reportProblem(ctx context.Context, want *config.Class, name, reason string, problem error) {
	if message := v1alpha1.EventMessage(problem); message != k.reported[name] {
		k.reported[name] = message
		klog.FromContext(ctx).Error(problem, "A DeviceClass differs from the configuration", "deviceClass", name)
		k.recorder.Event(want.For, corev1.EventTypeWarning, reason, message)
	}
}
