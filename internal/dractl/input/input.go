package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// Input is what files and a cluster say.
type Input struct {
	simulator.World
	// Waiting are the Pods that are to be scheduled.
	Waiting []*corev1.Pod
	// workloads are what makes Pods, such as Deployments.
	workloads []*workload
	// AddOther adds an object of a kind that decides nothing about devices in every cluster, and reports
	// whether it knows the kind. If it is nil, all such objects are skipped.
	AddOther func(object documents.Object, document *documents.Document) (isKnown bool, err error)
	// Skipped are kinds that have no bearing on devices.
	Skipped map[string]int
	// Notes say what of the objects is not considered.
	Notes []string
	// Once refuses objects that the files have twice.
	Once documents.Once
	// namespace is that of objects that say none.
	namespace string
}

// New makes an Input of which objects that say no namespace are in one.
func New(namespace string) *Input {
	return &Input{namespace: namespace, Skipped: map[string]int{}, Once: documents.Once{}}
}

// AddDocuments adds the objects of documents.
func (in *Input) AddDocuments(all []documents.Document) error {
	var errs []error
	for i := range all {
		objects, err := documents.Objects(all[i : i+1])
		errs = append(errs, err)
		for _, object := range objects {
			document := all[i]
			if len(objects) > 1 { // the document is a list
				document.Data, err = object.MarshalJSON()
				errs = append(errs, err)
			}
			errs = append(errs, in.addObject(object, &document))
		}
	}
	return errors.Join(errs...)
}

func (in *Input) addObject(object documents.Object, document *documents.Document) error {
	kind := object.GroupVersionKind()
	if kind.Group == "kustomize.config.k8s.io" {
		return nil // of the directory, not of the cluster
	}
	switch kind.GroupKind().String() {
	case "Pod":
		var pods []*corev1.Pod
		err := appendAs(in, &pods, object, new(corev1.Pod), in.namespace)
		in.AddPods(pods)
		return err
	case "Node":
		return appendAs(in, &in.Nodes, object, new(corev1.Node), "")
	case "Deployment.apps":
		d := new(appsv1.Deployment)
		err := appendAs(in, new([]*appsv1.Deployment), object, d, in.namespace)
		return in.addWorkload(err, object, &d.ObjectMeta, &d.Spec.Template, countOrOne(d.Spec.Replicas))
	case "ReplicaSet.apps":
		r := new(appsv1.ReplicaSet)
		err := appendAs(in, new([]*appsv1.ReplicaSet), object, r, in.namespace)
		return in.addWorkload(err, object, &r.ObjectMeta, &r.Spec.Template, countOrOne(r.Spec.Replicas))
	case "StatefulSet.apps":
		s := new(appsv1.StatefulSet)
		err := appendAs(in, new([]*appsv1.StatefulSet), object, s, in.namespace)
		return in.addWorkload(err, object, &s.ObjectMeta, &s.Spec.Template, countOrOne(s.Spec.Replicas))
	case "Job.batch":
		j := new(batchv1.Job)
		err := appendAs(in, new([]*batchv1.Job), object, j, in.namespace)
		return in.addWorkload(err, object, &j.ObjectMeta, &j.Spec.Template, parallelPods(&j.Spec, &j.Status))
	case "CronJob.batch":
		c := new(batchv1.CronJob)
		err := appendAs(in, new([]*batchv1.CronJob), object, c, in.namespace)
		spec := &c.Spec.JobTemplate.Spec
		return in.addWorkload(err, object, &c.ObjectMeta, &spec.Template, parallelPods(spec, &batchv1.JobStatus{}))
	case "ResourceSlice.resource.k8s.io":
		return appendAs(in, &in.Slices, object, new(resourcev1.ResourceSlice), "")
	case "DeviceClass.resource.k8s.io":
		return appendAs(in, &in.Classes, object, new(resourcev1.DeviceClass), "")
	case "DeviceTaintRule.resource.k8s.io":
		return appendAs(in, &in.TaintRules, object, new(resourcev1.DeviceTaintRule), "")
	case "ResourceClaim.resource.k8s.io":
		claim := new(resourcev1.ResourceClaim)
		if err := appendAs(in, &in.Claims, object, claim, in.namespace); err != nil {
			return err
		}
		return checkRequests(object, claim.Spec.Devices.Requests, "spec")
	case "ResourceClaimTemplate.resource.k8s.io":
		template := new(resourcev1.ResourceClaimTemplate)
		if err := appendAs(in, &in.ClaimTemplates, object, template, in.namespace); err != nil {
			return err
		}
		return checkRequests(object, template.Spec.Spec.Devices.Requests, "spec", "spec")
	}
	if in.AddOther != nil {
		if isKnown, err := in.AddOther(object, document); isKnown {
			return err
		}
	}
	in.Skipped[kind.Kind]++
	return nil
}

// checkRequests refuses requests that ask for nothing: the API server never accepts them, and the allocator
// does not expect them. fields is the path of the claim's spec in the object.
func checkRequests(object documents.Object, requests []resourcev1.DeviceRequest, fields ...string) error {
	for i := range requests {
		if requests[i].Exactly != nil || len(requests[i].FirstAvailable) > 0 {
			continue
		}
		path := slices.Concat(fields, []string{"devices", "requests"})
		written, _, _ := unstructured.NestedSlice(object.Object, path...)
		names := []string{}
		if i < len(written) {
			request, _ := written[i].(map[string]any)
			names = slices.DeleteFunc(slices.Sorted(maps.Keys(request)), func(name string) bool { return name == "name" })
		}
		want := "exactly"
		if object.GroupVersionKind().Version == "v1beta1" {
			want = "deviceClassName"
		}
		return fmt.Errorf("%s: %s %q: %s[%d]: must have %s or firstAvailable, and has %s", object.Where, object.GetKind(), object.GetName(),
			strings.Join(path, "."), i, want, cmp.Or(strings.Join(names, ", "), "neither"))
	}
	return nil
}

// AddPods separates bound Pods from Pods that are to be scheduled.
func (in *Input) AddPods(pods []*corev1.Pod) {
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName != "":
			in.Pods = append(in.Pods, pod)
		case pod.DeletionTimestamp == nil:
			in.Waiting = append(in.Waiting, pod)
		}
	}
}

// typed is an object of a Go type.
type typed interface {
	GetName() string
	GetNamespace() string
	SetNamespace(namespace string)
}

// appendAs appends an object as a typed one, in a namespace if it says none.
func appendAs[T typed](in *Input, all *[]T, object documents.Object, into T, namespace string) error {
	unknown, err := object.Convert(into)
	if err := cmp.Or(err, in.Once.Add(object, in.namespace)); err != nil {
		return err
	}
	if len(unknown) > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("%s: %s %q: fields not known: %s", object.Where, object.GetKind(), object.GetName(), strings.Join(unknown, ", ")))
	}
	if into.GetNamespace() == "" {
		into.SetNamespace(namespace)
	}
	*all = append(*all, into)
	return nil
}

// replaceNamed replaces objects of the cluster by objects of the same name in files, and
// adds the others.
func replaceNamed[T typed](cluster, files []T) []T {
	named := map[string]bool{}
	for _, object := range files {
		named[namespacedName(object.GetNamespace(), object.GetName())] = true
	}
	kept := slices.DeleteFunc(slices.Clone(cluster), func(object T) bool { return named[namespacedName(object.GetNamespace(), object.GetName())] })
	return append(kept, files...)
}

// AddCluster adds the objects of files to those of the cluster. If the files have no Pods and nothing that makes
// some, the Pods that wait in the cluster are scheduled.
func (in *Input) AddCluster(cluster *Input) {
	in.IsLive = cluster.IsLive && len(in.Nodes) == 0
	in.Nodes = replaceNamed(cluster.Nodes, in.Nodes)
	in.Slices = replaceNamed(cluster.Slices, in.Slices)
	in.Classes = replaceNamed(cluster.Classes, in.Classes)
	in.Claims = replaceNamed(cluster.Claims, in.Claims)
	in.ClaimTemplates = replaceNamed(cluster.ClaimTemplates, in.ClaimTemplates)
	in.TaintRules = replaceNamed(cluster.TaintRules, in.TaintRules)
	in.Pods, in.LacksPods = replaceNamed(cluster.Pods, in.Pods), cluster.LacksPods
	if len(in.Waiting)+len(in.workloads) == 0 {
		in.Waiting = cluster.Waiting
	}
}

// NameNodes makes nodes for slices if there are no Nodes. Otherwise a slice whose
// Node is gone has no devices for anybody, and a note says so.
func (in *Input) NameNodes() {
	hasNodes := len(in.Nodes) > 0
	known := map[string]bool{}
	for _, node := range in.Nodes {
		known[node.Name] = true
	}
	for _, slice := range in.Slices {
		name := slice.Spec.NodeName
		switch {
		case name == nil || known[*name]:
			continue
		case hasNodes:
			in.Notes = append(in.Notes, fmt.Sprintf("ResourceSlice %q: there is no Node %s", slice.Name, *name))
			continue
		}
		known[*name] = true
		in.Nodes = append(in.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: *name, Labels: map[string]string{corev1.LabelHostname: *name}}})
	}
}

// namespacedName names an object of a namespace.
func namespacedName(namespace, name string) string { return namespace + "/" + name }

// ReadCluster reads the objects of a cluster.
func ReadCluster(ctx context.Context, client groupclient.Interface) (*Input, error) {
	world, pods, err := simulator.Read(ctx, client)
	if err != nil {
		return nil, err
	}
	in := &Input{World: *world}
	in.AddPods(pods)
	return in, nil
}
