package waiting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kwok-dra/kwok-dra/test/e2e/harness"
)

const (
	// decisionTimeout is how long controllers and the scheduler have, however busy the machine.
	decisionTimeout = 2 * time.Minute
	// copiesAnnotation is how often a Pod is there, with numbers after its name.
	copiesAnnotation = "copies"
)

// resources are the kinds of objects that cases have.
var resources = map[string]struct {
	schema.GroupVersionResource

	inNamespace bool
}{
	"Namespace":             {corev1.SchemeGroupVersion.WithResource("namespaces"), false},
	"Node":                  {corev1.SchemeGroupVersion.WithResource("nodes"), false},
	"PriorityClass":         {schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, false},
	"DeviceClass":           {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}, false},
	"ResourceSlice":         {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}, false},
	"DeviceTaintRule":       {schema.GroupVersionResource{Group: "resource.k8s.io", Version: taintRuleVersion(), Resource: "devicetaintrules"}, false},
	"ResourceClaimTemplate": {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}, true},
	"ResourceClaim":         {schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}, true},
	"ResourceQuota":         {corev1.SchemeGroupVersion.WithResource("resourcequotas"), true},
	"Event":                 {corev1.SchemeGroupVersion.WithResource("events"), true},
	"Pod":                   {corev1.SchemeGroupVersion.WithResource("pods"), true},
}

// taintRuleVersion is the version of DeviceTaintRules that the API server has.
func taintRuleVersion() string {
	if harness.KubernetesMinor() < 37 {
		return "v1beta2"
	}
	return "v1"
}

// world is a cluster in which one case is at a time.
type world struct {
	*testing.T

	client     kubernetes.Interface
	objects    dynamic.Interface
	kubeconfig string
	// namespace has the Pods of the case.
	namespace string
	// made are the objects of the case, in their order.
	made []*unstructured.Unstructured
	// fits is the verdict about the Pod before it came, and verdict what the command said.
	fits    bool
	verdict string
}

// applyDocuments brings the objects of a case into the cluster. If a Pod is not the last object, it has its
// node before the next one comes.
func (w *world) applyDocuments(documents []document) {
	w.Helper()
	w.Cleanup(w.clearCase)
	w.createObject(newObject("Namespace", w.namespace))
	for i, d := range documents {
		if d.Delete != "" {
			kind, name, _ := strings.Cut(d.Delete, "/")
			w.deleteObject(newObject(kind, name), metav1.DeleteOptions{GracePeriodSeconds: d.GracePeriodSeconds})
			continue
		}
		for _, object := range w.copiesOf(d.Object) {
			if object.GetKind() == "Pod" && object.GetName() == asker {
				w.askWhetherFits(object)
			}
			w.createObject(object)
			scheduler, _, _ := unstructured.NestedString(object.Object, "spec", "schedulerName")
			if object.GetKind() == "Pod" && i < len(documents)-1 && scheduler == "" {
				w.waitUntilBound(object.GetName())
			}
		}
	}
}

func newObject(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(resources[kind].GroupVersion().String())
	object.SetKind(kind)
	object.SetName(name)
	return object
}

// copiesOf returns an object as often as its annotation says.
func (w *world) copiesOf(object *unstructured.Unstructured) []*unstructured.Unstructured {
	w.Helper()
	text := object.GetAnnotations()[copiesAnnotation]
	if text == "" {
		return []*unstructured.Unstructured{object}
	}
	count, err := strconv.Atoi(text)
	require.NoError(w, err)
	copies := make([]*unstructured.Unstructured, count)
	for i := range copies {
		copies[i] = object.DeepCopy()
		copies[i].SetName(fmt.Sprintf("%s-%d", object.GetName(), i))
	}
	return copies
}

// apiOf finds the API of an object.
func (w *world) apiOf(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource := resources[object.GetKind()]
	if !resource.inNamespace {
		return w.objects.Resource(resource.GroupVersionResource)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(w.namespace)
	}
	return w.objects.Resource(resource.GroupVersionResource).Namespace(object.GetNamespace())
}

// createObject creates an object with its status, or updates the one that is there.
func (w *world) createObject(object *unstructured.Unstructured) {
	w.Helper()
	w.completeObject(object)
	api := w.apiOf(object)
	object.SetAPIVersion(resources[object.GetKind()].GroupVersion().String())
	_, err := api.Create(w.Context(), object.DeepCopy(), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(w, err)
		w.made = append(w.made, object)
	}
	if object.GetKind() == "Node" || object.GetKind() == "Namespace" {
		w.updateObject(api, object)
	}
	if status := object.Object["status"]; status != nil {
		w.setStatus(api, object.GetName(), status)
	}
	switch object.GetKind() {
	case "Namespace":
		w.createServiceAccount(object.GetName())
	case "ResourceQuota":
		w.waitUntilCounted(object.GetName())
	}
}

// waitUntilCounted waits until a quota is in force.
func (w *world) waitUntilCounted(quota string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		object, err := w.client.CoreV1().ResourceQuotas(w.namespace).Get(w.Context(), quota, metav1.GetOptions{})
		require.NoError(c, err)
		require.NotEmpty(c, object.Status.Used)
	}, decisionTimeout, 20*time.Millisecond)
}

// updateObject sets the labels and the spec of an object: a new Node has a taint that the case does not
// have.
func (w *world) updateObject(api dynamic.ResourceInterface, wanted *unstructured.Unstructured) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		object, err := api.Get(w.Context(), wanted.GetName(), metav1.GetOptions{})
		require.NoError(c, err)
		object.SetLabels(wanted.GetLabels())
		object.Object["spec"] = wanted.Object["spec"]
		_, err = api.Update(w.Context(), object, metav1.UpdateOptions{})
		require.NoError(c, err)
	}, decisionTimeout, 10*time.Millisecond)
}

// setStatus sets the status of an object. The one of a Pod comes once the Pod has its node.
func (w *world) setStatus(api dynamic.ResourceInterface, name string, status any) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		object, err := api.Get(w.Context(), name, metav1.GetOptions{})
		require.NoError(c, err)
		if object.GetKind() == "Pod" {
			bound, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
			require.NotEmpty(c, bound)
			known, _, _ := unstructured.NestedMap(object.Object, "status")
			maps.Copy(known, status.(map[string]any))
			status = known
		}
		object.Object["status"] = status
		_, err = api.UpdateStatus(w.Context(), object, metav1.UpdateOptions{})
		require.NoError(c, err)
	}, decisionTimeout, 50*time.Millisecond)
}

// createServiceAccount makes what a Pod needs, before the controller does.
func (w *world) createServiceAccount(namespace string) {
	w.Helper()
	_, err := w.client.CoreV1().ServiceAccounts(namespace).Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(w, err)
	}
}

// completeObject adds what only the cluster knows: the UIDs of Pods, and the time of an event.
func (w *world) completeObject(object *unstructured.Unstructured) {
	w.Helper()
	switch object.GetKind() {
	case "Event":
		name, _, _ := unstructured.NestedString(object.Object, "involvedObject", "name")
		now := time.Now().UTC().Format(time.RFC3339)
		object.Object["firstTimestamp"], object.Object["lastTimestamp"] = now, now
		require.NoError(w, unstructured.SetNestedField(object.Object, w.uidOf(name), "involvedObject", "uid"))
		require.NoError(w, unstructured.SetNestedField(object.Object, w.namespace, "involvedObject", "namespace"))
	case "ResourceClaim":
		consumers, _, _ := unstructured.NestedSlice(object.Object, "status", "reservedFor")
		for i := range consumers {
			consumer := consumers[i].(map[string]any)
			consumer["uid"] = w.uidOf(consumer["name"].(string))
		}
		if len(consumers) > 0 {
			require.NoError(w, unstructured.SetNestedSlice(object.Object, consumers, "status", "reservedFor"))
		}
	}
}

func (w *world) uidOf(pod string) string {
	w.Helper()
	object, err := w.client.CoreV1().Pods(w.namespace).Get(w.Context(), pod, metav1.GetOptions{})
	require.NoError(w, err)
	return string(object.UID)
}

func (w *world) waitUntilBound(name string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		pod, err := w.client.CoreV1().Pods(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
		require.NoError(c, err)
		require.NotEmpty(c, pod.Spec.NodeName, "%v", pod.Status.Conditions)
	}, decisionTimeout, 20*time.Millisecond)
}

func (w *world) deleteObject(object *unstructured.Unstructured, options metav1.DeleteOptions) {
	w.Helper()
	err := w.apiOf(object).Delete(w.Context(), object.GetName(), options)
	if !apierrors.IsNotFound(err) {
		require.NoError(w, err)
	}
}

// clearCase removes the case, so that the next one has the cluster for itself. The namespaces go in the
// background.
func (w *world) clearCase() {
	ctx := context.WithoutCancel(w.Context())
	pods := w.client.CoreV1().Pods(w.namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for i := range list.Items {
		if pod := &list.Items[i]; len(pod.Finalizers) > 0 {
			_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			require.NoError(w, err)
		}
		if pod := &list.Items[i]; pod.Spec.NodeName == "" { // the scheduler would give it what the others leave
			err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			require.True(w, err == nil || apierrors.IsNotFound(err), "%v", err)
		}
	}
	require.NoError(w, pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}))
	for _, object := range slices.Backward(w.made) {
		err := w.apiOf(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			require.NoError(w, err)
		}
	}
	require.EventuallyWithT(w, func(c *assert.CollectT) { // they have devices
		claims, err := w.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
		require.NoError(c, err)
		require.Empty(c, claims.Items)
	}, decisionTimeout, 20*time.Millisecond)
}
