// Package classes keeps the DeviceClasses that adapted configuration needs.
//
// It observes DeviceClasses, asks config which ones should exist, plans the next
// step in a pure function, and applies it in one API call. It never touches a
// DeviceClass that this installation of kwok-dra has not created.
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

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/cached"
	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/installation"
	"github.com/kwok-dra/kwok-dra/pkg/loop"
	"github.com/kwok-dra/kwok-dra/pkg/shard"
)

// askAgain is how often the API server is asked whether it now keeps a field that
// it dropped.
const askAgain = 30 * time.Second

// Writes that others undo follow each other at once at first, and later after a time that
// doubles up to lastRound: a program that does so without an end is no reason to.
const (
	firstRound = 25 * time.Millisecond
	lastRound  = 30 * time.Minute
)

// Keeper keeps the DeviceClasses.
type Keeper struct {
	client   resourceclient.DeviceClassInterface
	config   *config.Store
	owner    *shard.Owner
	recorder record.EventRecorder
	classes  cached.Informer[*resourcev1.DeviceClass]
	// rounds has how often each class was written since the configuration changed.
	rounds *flowcontrol.Backoff
	// loop has one worker, to which told, asked and retired belong.
	loop *loop.Loop[string]
	// told maps classes that are wanted to the last message about them.
	told map[string]string
	// asked maps classes that are wanted to when the API server last dropped something of
	// them.
	asked map[string]time.Time
	// retired has classes without a record that were not wanted. They are of a version
	// before records, and if another one comes, such a version makes it. An entry ends
	// lastRound after its class.
	retired map[string]retired
}

// retired is a class that was not wanted, and since when.
type retired struct {
	uid types.UID
	at  time.Time
}

// New makes a Keeper; Run starts it. It acts where the owner leads.
func New(client kubernetes.Interface, store *config.Store, owner *shard.Owner, recorder record.EventRecorder) *Keeper {
	k := &Keeper{
		client:   client.ResourceV1().DeviceClasses(),
		config:   store,
		owner:    owner,
		recorder: recorder,
		classes:  cached.NewInformer[*resourcev1.DeviceClass](resourceinformers.NewDeviceClassInformer(client, 0, nil), nil),
		told:     map[string]string{},
		asked:    map[string]time.Time{},
		retired:  map[string]retired{},
		rounds:   flowcontrol.NewBackOff(firstRound, lastRound),
	}
	k.loop = loop.New("classes", k.reconcile)
	store.OnChange(k.configChanged)
	owner.OnChange(func(string) {}, k.enqueueAll)
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
	k.loop.Run(ctx, 1) // also where ctx has ended, to shut the queue down
	running.Wait()
}

func (k *Keeper) configChanged() {
	if set := k.config.Current(); set != nil {
		for i := range set.Classes {
			k.rounds.Reset(set.Classes[i].Name)
		}
	}
	k.enqueueAll()
}

// enqueueAll queues the classes there are, and those that there should be.
func (k *Keeper) enqueueAll() {
	for _, name := range k.classes.Keys() {
		k.loop.Add(name)
	}
	if set := k.config.Current(); set != nil {
		for i := range set.Classes {
			k.loop.Add(set.Classes[i].Name)
		}
	}
}

// reconcile brings one class to the state it should be in.
func (k *Keeper) reconcile(ctx context.Context, name string) error {
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
	next := plan(k.owner.Installation(), want, existing, time.Since(k.asked[name]) >= askAgain)
	switch {
	case next.verb == remove && !k.mayRetire(existing):
		return nil
	case next.verb == leave:
		k.tell(ctx, want, name, v1alpha1.ReasonDeviceClassNotManaged, k.leftError(existing))
	}
	if wait := k.rounds.Get(name); (next.verb == create || next.verb == update) && k.rounds.IsInBackOffSinceUpdate(name, time.Now()) {
		k.loop.AddAfter(name, wait)
		return nil
	}
	err := k.apply(ctx, want, next)
	if err != nil && want != nil && !loop.LostRace(err) && k.loop.Failures(name) >= loop.Patience {
		k.tell(ctx, want, name, v1alpha1.ReasonDeviceClassFailed, err)
	}
	return err
}

// forgetUnwanted drops what is remembered of a class that is not wanted, and of one that was not
// before.
func (k *Keeper) forgetUnwanted(name string, want *config.Class, existing *resourcev1.DeviceClass) {
	if want == nil {
		delete(k.told, name)
		delete(k.asked, name)
	}
	before, known := k.retired[name]
	switch left := lastRound - time.Since(before.at); {
	case !known || existing != nil && want == nil:
	case want == nil && left > 0:
		k.loop.AddAfter(name, left)
	default:
		delete(k.retired, name)
	}
}

// leftError says why a class that is wanted is left alone.
func (k *Keeper) leftError(existing *resourcev1.DeviceClass) error {
	as, owner := k.owner.Installation(), installation.Of(existing)
	if as.IsAnother(owner) {
		return &installation.OwnedError{Object: "DeviceClass " + existing.Name, Resource: "deviceclass " + existing.Name, Owner: owner, As: as}
	}
	return fmt.Errorf("DeviceClass %s was not created by kwok-dra, which leaves it alone: Pods get what it selects; delete it, and kwok-dra creates its own", existing.Name)
}

// mayRetire reports whether a class that is not wanted is to go: one without a record,
// once.
func (k *Keeper) mayRetire(existing *resourcev1.DeviceClass) bool {
	if k.owner.Installation() == "" || installation.Of(existing) != "" {
		return true
	}
	if _, known := k.retired[existing.Name]; !known {
		k.retired[existing.Name] = retired{existing.UID, time.Now()}
	}
	return k.retired[existing.Name].uid == existing.UID
}

// apply does one step.
func (k *Keeper) apply(ctx context.Context, want *config.Class, next step) error {
	var stored *resourcev1.DeviceClass
	var err error
	switch next.verb {
	case create:
		stored, err = k.client.Create(ctx, next.class, metav1.CreateOptions{})
	case update:
		stored, err = k.client.Update(ctx, next.class, metav1.UpdateOptions{})
	case remove:
		// The class is deleted as long as it is what the cache says.
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
	k.rounds.Next(next.class.Name, time.Now())
	k.rounds.GC()
	klog.FromContext(ctx).Info("Brought a DeviceClass up to date", "deviceClass", next.class.Name, "verb", next.verb)
	if stored != nil {
		k.checkStored(ctx, want, next.class, stored)
	}
	return nil
}

// checkStored reports a field that the API server drops, and asks again later.
func (k *Keeper) checkStored(ctx context.Context, want *config.Class, sent, stored *resourcev1.DeviceClass) {
	if !dropped(sent, stored) {
		delete(k.told, sent.Name)
		return
	}
	k.asked[sent.Name] = time.Now()
	k.rounds.Reset(sent.Name) // nobody undoes it
	k.loop.AddAfter(sent.Name, askAgain)
	k.tell(ctx, want, sent.Name, v1alpha1.ReasonFieldsDropped, fmt.Errorf(
		"the API server drops extendedResourceName %s of DeviceClass %s, so Pods that ask for it as an extended resource remain Pending: turn on its feature gate DRAExtendedResource, or use ResourceClaims",
		*sent.Spec.ExtendedResourceName, sent.Name))
}

// tell writes an event about a problem on the object that needs the class, once.
func (k *Keeper) tell(ctx context.Context, want *config.Class, name, reason string, problem error) {
	if message := v1alpha1.EventMessage(problem); message != k.told[name] {
		k.told[name] = message
		klog.FromContext(ctx).Error(problem, "A DeviceClass is not what the configuration says", "deviceClass", name)
		k.recorder.Event(want.For, corev1.EventTypeWarning, reason, message)
	}
}
