// Package groupclient reads and watches the API groups that devices and their users are in.
package groupclient

import (
	"cmp"
	"errors"
	"fmt"

	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	resourcev1 "k8s.io/client-go/kubernetes/typed/resource/v1"
	resourcev1alpha3 "k8s.io/client-go/kubernetes/typed/resource/v1alpha3"
	resourcev1beta2 "k8s.io/client-go/kubernetes/typed/resource/v1beta2"
	schedulingv1 "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	"k8s.io/client-go/rest"
)

// ErrUnserved says that the API server does not know ResourceClaims and ResourceSlices.
var ErrUnserved = errors.New("the API server does not serve resource.k8s.io/v1: use Kubernetes 1.34 or later, and do not switch the API off")

// Interface is the part of kubernetes.Interface that is needed. A kubernetes.Clientset links the clients of all
// groups, which make a program megabytes larger.
type Interface interface {
	AppsV1() appsv1.AppsV1Interface
	BatchV1() batchv1.BatchV1Interface
	CoreV1() corev1.CoreV1Interface
	ResourceV1() resourcev1.ResourceV1Interface
	ResourceV1alpha3() resourcev1alpha3.ResourceV1alpha3Interface
	ResourceV1beta2() resourcev1beta2.ResourceV1beta2Interface
	SchedulingV1() schedulingv1.SchedulingV1Interface
}

// groups implements Interface.
type groups struct {
	apps             *appsv1.AppsV1Client
	batch            *batchv1.BatchV1Client
	core             *corev1.CoreV1Client
	resource         *resourcev1.ResourceV1Client
	resourceV1alpha3 *resourcev1alpha3.ResourceV1alpha3Client
	resourceV1beta2  *resourcev1beta2.ResourceV1beta2Client
	scheduling       *schedulingv1.SchedulingV1Client
}

// NewForConfig makes a client of an API server. All groups share its connections.
func NewForConfig(config *rest.Config) (Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent()) // which connections send
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	var g groups
	var errs [7]error
	g.apps, errs[0] = appsv1.NewForConfigAndClient(config, connections)
	g.batch, errs[1] = batchv1.NewForConfigAndClient(config, connections)
	g.core, errs[2] = corev1.NewForConfigAndClient(config, connections)
	g.resource, errs[3] = resourcev1.NewForConfigAndClient(config, connections)
	g.resourceV1alpha3, errs[4] = resourcev1alpha3.NewForConfigAndClient(config, connections)
	g.resourceV1beta2, errs[5] = resourcev1beta2.NewForConfigAndClient(config, connections)
	g.scheduling, errs[6] = schedulingv1.NewForConfigAndClient(config, connections)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &g, nil
}

// AppsV1 implements Interface.
func (g *groups) AppsV1() appsv1.AppsV1Interface { return g.apps }

// BatchV1 implements Interface.
func (g *groups) BatchV1() batchv1.BatchV1Interface { return g.batch }

// CoreV1 implements Interface.
func (g *groups) CoreV1() corev1.CoreV1Interface { return g.core }

// ResourceV1 implements Interface.
func (g *groups) ResourceV1() resourcev1.ResourceV1Interface { return g.resource }

// ResourceV1alpha3 implements Interface.
func (g *groups) ResourceV1alpha3() resourcev1alpha3.ResourceV1alpha3Interface {
	return g.resourceV1alpha3
}

// ResourceV1beta2 implements Interface.
func (g *groups) ResourceV1beta2() resourcev1beta2.ResourceV1beta2Interface {
	return g.resourceV1beta2
}

// SchedulingV1 implements Interface.
func (g *groups) SchedulingV1() schedulingv1.SchedulingV1Interface { return g.scheduling }
