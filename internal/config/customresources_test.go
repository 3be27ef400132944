package config

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kwok-dra/kwok-dra/internal/testing/runtest"
)

// definitions is an API server that serves the kinds, unless it says otherwise.
type definitions struct {
	discovery.ServerResourcesInterfaceWithContext
	client *dynamicfake.FakeDynamicClient
	// unknown has discovery, and noList the lists, answer that there is no such kind.
	unknown, noList atomic.Bool
}

func (d *definitions) ServerResourcesForGroupVersionWithContext(_ context.Context, version string) (*metav1.APIResourceList, error) {
	if d.unknown.Load() {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	list := &metav1.APIResourceList{}
	for _, kind := range OwnKinds() {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: kind.Resource.Resource})
	}
	return list, nil
}

func newDefinitions(objects ...*unstructured.Unstructured) *definitions {
	kinds := map[schema.GroupVersionResource]string{}
	for _, kind := range OwnKinds() {
		kinds[kind.Resource] = kind.Name + "List"
	}
	all := make([]runtime.Object, len(objects))
	for i := range objects {
		all[i] = objects[i]
	}
	d := &definitions{client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)}
	d.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return d.noList.Load(), nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	})
	return d
}

// run watches the custom resources until the test ends, and returns the store.
func (d *definitions) run(t *testing.T) *Store {
	t.Helper()
	store := NewStore(ObjectsCarrier)
	watched := NewCustomResources(d.client, d, NewObjects(store, record.NewFakeRecorder(100), func() {}), OwnKinds()...)
	t.Cleanup(synctest.Wait)
	runtest.UntilEnd(quiet(t), t, watched.Run)
	time.Sleep(time.Second) // a cache that fills is asked now and then
	synctest.Wait()
	return store
}

// TestDefinitionIsGone only when its own list says so as well, twice and seconds
// apart: one answer of discovery retires nothing.
func TestDefinitionIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDefinitions(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec))
		store := d.run(t)
		pass := func(rounds int) {
			time.Sleep(time.Duration(rounds) * discoveryInterval)
			synctest.Wait()
		}
		require.Equal(t, []string{"a"}, setNames(store.Current()))
		d.unknown.Store(true)
		pass(10)
		require.Equal(t, []string{"a"}, setNames(store.Current()), "its list still answers")
		d.noList.Store(true)
		pass(1)
		require.Equal(t, []string{"a"}, setNames(store.Current()), "once is not enough")
		d.noList.Store(false)
		pass(1)
		d.noList.Store(true)
		pass(1)
		require.Equal(t, []string{"a"}, setNames(store.Current()), "nor is twice with an answer between")
		pass(1)
		require.Empty(t, store.Current().Templates)
		d.noList.Store(false)
		d.unknown.Store(false)
		pass(1)
		require.Equal(t, []string{"a"}, setNames(store.Current()))
	})
}

// TestDefinitionIsUnknownAtTheStart: an API server that starts may answer so, and
// nothing is known until it has said so twice.
func TestDefinitionIsUnknownAtTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDefinitions(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec))
		d.unknown.Store(true)
		d.noList.Store(true)
		store := d.run(t)
		require.Nil(t, store.Current())
		d.unknown.Store(false)
		d.noList.Store(false)
		time.Sleep(discoveryInterval)
		synctest.Wait()
		require.Equal(t, []string{"a"}, setNames(store.Current()))
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDefinitions()
		d.unknown.Store(true)
		d.noList.Store(true)
		store := d.run(t)
		time.Sleep(discoveryInterval)
		synctest.Wait()
		require.NotNil(t, store.Current(), "without a definition there are no objects")
	})
}

// TestDeletedWhileTheOthersAreListed: a template that goes in the moment between its
// list and the watch of the rest does not stay in force.
func TestDeletedWhileTheOthersAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDefinitions(custom(t, "ResourcePoolTemplate", "a", 1, goodSpec), custom(t, "ResourcePoolTemplate", "b", 1, goodSpec))
		d.client.PrependReactor("list", "kwokdraconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
			// The first kind has been listed, and is watched.
			require.NoError(t, d.client.Tracker().Delete(OwnKinds()[0].Resource, "", "a"))
			synctest.Wait()
			return false, nil, nil
		})
		store := d.run(t)
		require.Equal(t, []string{"b"}, setNames(store.Current()))
	})
}
