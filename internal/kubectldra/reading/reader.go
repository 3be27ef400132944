package reading

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory/taintrules"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// pageSize is how many objects one request asks for, as kubectl get does.
const pageSize = 500

// Reader lists objects of a cluster, without their managed fields. What the user may not list, and what the
// API server does not serve, is left out of the answer and remembered. Its methods may be called in parallel.
type Reader struct {
	client groupclient.Interface

	lock   sync.Mutex
	unseen []Unseen
}

// Unseen is what could not be read.
type Unseen struct {
	Verb, Resource string
	// Namespace is empty for all namespaces, and for resources without one.
	Namespace string
	// IsForbidden says that the user lacks the right. Otherwise the API server does not serve the resource.
	IsForbidden bool
}

// Describe says what could not be read, why, and what to do.
func (u Unseen) Describe() string {
	if !u.IsForbidden {
		return groupclient.ErrUnserved.Error()
	}
	where := ""
	switch {
	case u.Namespace != "":
		where = " in namespace " + u.Namespace
	case slices.Contains([]string{"events", "pods", "resourceclaims", "resourceclaimtemplates"}, u.Resource):
		where = " in all namespaces"
	}
	return fmt.Sprintf("cannot %s %s%s: ask for the ClusterRole dra-viewer, or for the right to %s them", u.Verb, u.Resource, where, u.Verb)
}

// NewReaderOf makes a Reader of a client.
func NewReaderOf(client groupclient.Interface) *Reader { return &Reader{client: client} }

// Client is the client that the Reader reads with, for single objects and watches.
func (r *Reader) Client() groupclient.Interface { return r.client }

// Unseen returns what could not be read so far.
func (r *Reader) Unseen() []Unseen {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.unseen)
}

// ExplainUnseen is the error of a command that has no answer without some resources. It says why they could not be read.
func (r *Reader) ExplainUnseen(resources ...string) error {
	var reasons []string
	unseen := r.Unseen()
	for _, resource := range resources {
		for _, lacked := range unseen {
			if reason := lacked.Describe(); lacked.Resource == resource && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	return errors.New(strings.Join(reasons, "\n"))
}

// NoteUnseen remembers what could not be read, if the error says that the user may not read it or that the
// API server does not serve it. It returns any other error.
func (r *Reader) NoteUnseen(verb, resource, namespace string, err error) error {
	if err == nil {
		return nil
	}
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s: %w", verb, resource, err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if unseen := (Unseen{verb, resource, namespace, apierrors.IsForbidden(err)}); !slices.Contains(r.unseen, unseen) {
		r.unseen = append(r.unseen, unseen)
	}
	return nil
}

// InParallel calls functions in parallel, and returns their errors.
func InParallel(functions ...func() error) error {
	errs := make([]error, len(functions))
	var running sync.WaitGroup
	for i, function := range functions {
		running.Go(func() { errs[i] = function() })
	}
	running.Wait()
	return errors.Join(errs...)
}

// request is what to list.
type request struct {
	resource, namespace string
	options             metav1.ListOptions
}

// listPages lists objects page by page.
func listPages[T any, L runtime.Object](ctx context.Context, r *Reader, asked request, list func(context.Context, metav1.ListOptions) (L, error)) ([]*T, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := list(ctx, options)
		if err != nil {
			return nil, err
		}
		liftMemoryBudget()
		return page, meta.EachListItem(page, func(object runtime.Object) error {
			// What no answer needs is a good part of an object.
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			if node, ok := object.(*corev1.Node); ok {
				node.Status.Images = nil
			}
			return nil
		})
	})
	pages.PageSize = pageSize
	listed, _, err := pages.List(ctx, asked.options)
	if err != nil {
		return nil, r.NoteUnseen("list", asked.resource, asked.namespace, err)
	}
	all := make([]*T, 0, meta.LenList(listed))
	err = meta.EachListItem(listed, func(object runtime.Object) error {
		all = append(all, any(object).(*T))
		return nil
	})
	return all, err
}

// Slices lists the ResourceSlices.
func (r *Reader) Slices(ctx context.Context) ([]*resourcev1.ResourceSlice, error) {
	return listPages[resourcev1.ResourceSlice](ctx, r, request{resource: "resourceslices"}, r.client.ResourceV1().ResourceSlices().List)
}

// SummarizeSlices lists the ResourceSlices without their devices, and what a function makes of each whole one. A device with
// its attributes takes a few kilobytes.
func SummarizeSlices[T any](ctx context.Context, r *Reader, summarize func(*resourcev1.ResourceSlice) T) (all []*resourcev1.ResourceSlice, summaries []T, err error) {
	list := func(ctx context.Context, options metav1.ListOptions) (*resourcev1.ResourceSliceList, error) {
		page, err := r.client.ResourceV1().ResourceSlices().List(ctx, options)
		if err != nil {
			return nil, err
		}
		if options.Continue == "" { // the first page, or all of them because the list has expired
			summaries = nil
		}
		for i := range page.Items {
			spec := &page.Items[i].Spec
			summaries = append(summaries, summarize(&page.Items[i]))
			spec.Devices, spec.SharedCounters = nil, nil
		}
		return page, nil
	}
	all, err = listPages[resourcev1.ResourceSlice](ctx, r, request{resource: "resourceslices"}, list)
	return all, summaries, err
}

// SlicesWith lists the ResourceSlices with the attributes that a function keeps. The capacity of devices is left out
// without keepsCapacity, except that of devices that claims share.
func (r *Reader) SlicesWith(ctx context.Context, keepsAttribute func(resourcev1.QualifiedName) bool, keepsCapacity bool) ([]*resourcev1.ResourceSlice, error) {
	list := func(ctx context.Context, options metav1.ListOptions) (*resourcev1.ResourceSliceList, error) {
		page, err := r.client.ResourceV1().ResourceSlices().List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			for j := range page.Items[i].Spec.Devices {
				device := &page.Items[i].Spec.Devices[j]
				keepAttributes(device, keepsAttribute)
				if !keepsCapacity && (device.AllowMultipleAllocations == nil || !*device.AllowMultipleAllocations) {
					device.Capacity = nil
				}
			}
		}
		return page, nil
	}
	return listPages[resourcev1.ResourceSlice](ctx, r, request{resource: "resourceslices"}, list)
}

// keepAttributes drops the other attributes of a device, and frees their memory.
func keepAttributes(device *resourcev1.Device, keeps func(resourcev1.QualifiedName) bool) {
	kept := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	for name, value := range device.Attributes {
		if keeps(name) {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		kept = nil
	}
	if len(kept) < len(device.Attributes) {
		device.Attributes = kept
	}
}

// SlicesOf lists the slices of a node, or with an empty name those of no node in particular.
func (r *Reader) SlicesOf(ctx context.Context, node string) ([]*resourcev1.ResourceSlice, error) {
	asked := request{resource: "resourceslices", options: metav1.ListOptions{FieldSelector: resourcev1.ResourceSliceSelectorNodeName + "=" + node}}
	return listPages[resourcev1.ResourceSlice](ctx, r, asked, r.client.ResourceV1().ResourceSlices().List)
}

// Classes lists the DeviceClasses.
func (r *Reader) Classes(ctx context.Context) ([]*resourcev1.DeviceClass, error) {
	return listPages[resourcev1.DeviceClass](ctx, r, request{resource: "deviceclasses"}, r.client.ResourceV1().DeviceClasses().List)
}

// Claims lists the ResourceClaims of a namespace, or of all.
func (r *Reader) Claims(ctx context.Context, namespace string) ([]*resourcev1.ResourceClaim, error) {
	return listPages[resourcev1.ResourceClaim](ctx, r, request{resource: "resourceclaims", namespace: namespace}, r.client.ResourceV1().ResourceClaims(namespace).List)
}

// ClaimTemplates lists the ResourceClaimTemplates of a namespace, or of all.
func (r *Reader) ClaimTemplates(ctx context.Context, namespace string) ([]*resourcev1.ResourceClaimTemplate, error) {
	return listPages[resourcev1.ResourceClaimTemplate](ctx, r, request{resource: "resourceclaimtemplates", namespace: namespace}, r.client.ResourceV1().ResourceClaimTemplates(namespace).List)
}

// Pods lists the Pods of a namespace, or of all, that a selector of labels selects, or all.
func (r *Reader) Pods(ctx context.Context, namespace, selector string) ([]*corev1.Pod, error) {
	asked := request{resource: "pods", namespace: namespace, options: metav1.ListOptions{LabelSelector: selector}}
	return listPages[corev1.Pod](ctx, r, asked, r.client.CoreV1().Pods(namespace).List)
}

// PodsWithClaims lists the Pods of a namespace, or of all, that have claims, with no more than says where they are,
// whether they run, and which of their devices are unhealthy. It needs much less memory than Pods.
func (r *Reader) PodsWithClaims(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	asked := request{resource: "pods", namespace: namespace}
	return listPages[corev1.Pod](ctx, r, asked, func(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
		page, err := r.client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		var kept []corev1.Pod
		for i := range page.Items {
			if pod := &page.Items[i]; len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil {
				pod.Annotations = nil
				pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, ResourceClaims: pod.Spec.ResourceClaims}
				pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = keepUnhealthy(pod.Status.ContainerStatuses), nil
				kept = append(kept, *pod)
			}
		}
		page.Items = kept
		return page, nil
	})
}

// keepUnhealthy keeps what a kubelet says of unhealthy devices.
func keepUnhealthy(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	isUnhealthy := func(h corev1.ResourceHealth) bool { return h.Health == corev1.ResourceHealthStatusUnhealthy }
	var kept []corev1.ContainerStatus
	for i := range statuses {
		resources := statuses[i].AllocatedResourcesStatus
		if slices.ContainsFunc(resources, func(r corev1.ResourceStatus) bool { return slices.ContainsFunc(r.Resources, isUnhealthy) }) {
			kept = append(kept, corev1.ContainerStatus{AllocatedResourcesStatus: resources})
		}
	}
	return kept
}

// Nodes lists the Nodes.
func (r *Reader) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	return listPages[corev1.Node](ctx, r, request{resource: "nodes"}, r.client.CoreV1().Nodes().List)
}

// Namespaces lists the Namespaces.
func (r *Reader) Namespaces(ctx context.Context) ([]*corev1.Namespace, error) {
	return listPages[corev1.Namespace](ctx, r, request{resource: "namespaces"}, r.client.CoreV1().Namespaces().List)
}

// Events lists the Events of a namespace, or of all, that a selector of fields selects.
func (r *Reader) Events(ctx context.Context, namespace, fieldSelector string) ([]*corev1.Event, error) {
	asked := request{resource: "events", namespace: namespace, options: metav1.ListOptions{FieldSelector: fieldSelector}}
	return listPages[corev1.Event](ctx, r, asked, r.client.CoreV1().Events(namespace).List)
}

// TaintRules lists the DeviceTaintRules, in the newest version that the API server has. Where it has none, no
// rule can exist.
func (r *Reader) TaintRules(ctx context.Context) ([]*resourcev1.DeviceTaintRule, error) {
	rules, err := taintrules.ListVersion(ctx, r.client)
	return rules, r.NoteUnseen("list", "devicetaintrules", "", err)
}
