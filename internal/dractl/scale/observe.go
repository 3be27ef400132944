package scale

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cluster"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/dractl/target"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

var (
	nodeResource     = corev1.SchemeGroupVersion.WithResource("nodes")
	classResource    = resourcev1.SchemeGroupVersion.WithResource("deviceclasses")
	templateResource = v1alpha1.GroupVersion.WithResource("resourcepooltemplates")
)

// resourceOf is the resource of an object that a plan makes or removes.
func resourceOf(object *unstructured.Unstructured) schema.GroupVersionResource {
	if object.GetKind() == v1alpha1.ResourcePoolTemplateKind {
		return templateResource
	}
	return classResource
}

// world is the cluster.
type world struct {
	client   kubernetes.Interface
	objects  dynamic.Interface
	metadata metadata.Interface
	// hasTemplates says that the cluster has the kind ResourcePoolTemplate.
	hasTemplates bool
}

func newWorld(reach *cluster.Flags) (*world, error) {
	client, err := reach.Client()
	if err != nil {
		return nil, err
	}
	config, err := reach.RESTConfig()
	if err != nil {
		return nil, err
	}
	w := &world{client: client}
	if w.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if w.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return w, nil
}

// observeCluster reads what a plan needs, and what a target may name.
func (w *world) observeCluster(ctx context.Context, streams cli.Streams) (*target.Observed, *target.Known, error) {
	seen := &target.Observed{}
	known := &target.Known{Uses: map[string][]string{}}
	set, err := (&fleet.Templates{}).SetInCluster(ctx, streams, w.client, w.objects)
	if err != nil {
		return nil, nil, err
	}
	known.Templates, seen.Templates = set.Templates, set.Templates
	nodes, err := w.metadata.Resource(nodeResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	seen.Nodes = nodes.Items
	for i := range seen.Nodes {
		if name, has := seen.Nodes[i].Labels[v1alpha1.ScaleLabel]; has && known.Uses[name] == nil {
			known.Uses[name] = strings.Split(seen.Nodes[i].Annotations[v1alpha1.ScaleUsesAnnotation], ",")
		}
	}
	seen.Objects, err = w.listObjects(ctx)
	return seen, known, err
}

// listObjects lists the DeviceClasses and the templates that there are.
func (w *world) listObjects(ctx context.Context) (objects []*unstructured.Unstructured, err error) {
	for _, resource := range []schema.GroupVersionResource{classResource, templateResource} {
		list, err := w.objects.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) && resource == templateResource {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		w.hasTemplates = w.hasTemplates || resource == templateResource
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	return objects, nil
}

// observeUsers reads what removing nodes and objects would harm: Pods on nodes, and what asks
// for devices of DeviceClasses.
func (w *world) observeUsers(ctx context.Context, seen *target.Observed) error {
	seen.Users = map[string]string{}
	// Claims are listed before the Pods that they are made for, which so are not missed.
	claims, err := w.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	pods, err := w.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.AndSelectors(fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))).String(),
	})
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	templates, err := w.client.ResourceV1().ResourceClaimTemplates("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ResourceClaimTemplates: %w", err)
	}
	for i := range templates.Items {
		addUser(seen.Users, describeObject("ResourceClaimTemplate", &templates.Items[i]), &templates.Items[i].Spec.Spec)
	}
	running, resources := observePods(pods.Items, seen)
	for i := range claims.Items {
		claim := &claims.Items[i]
		owner := metav1.GetControllerOf(claim)
		switch {
		case owner == nil || owner.Kind != "Pod":
			addUser(seen.Users, describeObject("ResourceClaim", claim), &claim.Spec)
		case running[owner.UID]: // otherwise the claim goes after its Pod
			addUser(seen.Users, "Pod "+claim.Namespace+"/"+owner.Name, &claim.Spec)
		}
	}
	for _, object := range seen.Objects {
		extended, _, _ := unstructured.NestedString(object.Object, "spec", "extendedResourceName")
		user := cmp.Or(resources[extended], resources[resourcev1.ResourceDeviceClassPrefix+object.GetName()])
		if resourceOf(object) == classResource && user != "" {
			seen.Users[object.GetName()] = user
		}
	}
	return nil
}

// observePods counts the Pods on nodes, and returns which there are and which of them ask for
// a resource.
func observePods(pods []corev1.Pod, seen *target.Observed) (running map[types.UID]bool, resources map[string]string) {
	seen.Pods, running, resources = map[string]int{}, map[types.UID]bool{}, map[string]string{}
	for i := range pods {
		pod := &pods[i]
		running[pod.UID] = true
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "DaemonSet" {
			seen.Pods[pod.Spec.NodeName]++
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for resource := range container.Resources.Requests {
				resources[string(resource)] = describeObject("Pod", pod)
			}
		}
	}
	return running, resources
}

func describeObject(kind string, object metav1.Object) string {
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}

// addUser records which DeviceClasses a claim names.
func addUser(users map[string]string, name string, spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		if exactly := spec.Devices.Requests[i].Exactly; exactly != nil {
			users[exactly.DeviceClassName] = name
		}
		for _, alternative := range spec.Devices.Requests[i].FirstAvailable {
			users[alternative.DeviceClassName] = name
		}
	}
}
