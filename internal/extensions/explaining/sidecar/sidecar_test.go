package sidecar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/fleet"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/why"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const driver = "gpu.example.com"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

// scene is a cluster of one fake node with two GPUs, and a Pod with a claim for one.
type scene struct {
	pod           *corev1.Pod
	node          *corev1.Node
	class         *resourcev1.DeviceClass
	slice         *resourcev1.ResourceSlice
	claim         *resourcev1.ResourceClaim
	others        []runtime.Object
	configuration string
}

func newScene() *scene {
	s := &scene{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "pod", CreationTimestamp: at(0)},
			Spec: corev1.PodSpec{
				SchedulerName:  "default-scheduler",
				ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		},
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}, Labels: map[string]string{"kind": "gpu"},
		}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"pods": resource.MustParse("10")}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		class: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}},
		slice: &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: new("n"), Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
		}},
		claim: &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "claim"}},
		configuration: `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: t}
spec:
  driver: gpu.example.com
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: In, values: [gpu]}]}]}
  devices: [{name: gpu, count: 2}]
---
`,
	}
	s.claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
	}}}
	return s
}

// allocate gives the claim a device, for the Pod.
func (s *scene) allocate() {
	s.claim.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: new(at(2)), Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpus", Driver: driver, Pool: "n", Device: "gpu-0"}},
	}}
	s.claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "pod"}}
}

// bind puts the Pod on the node, with its devices, as kwok-dra has it wait.
func (s *scene) bind() {
	s.allocate()
	s.pod.Spec.NodeName = "n"
	s.pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(3)},
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
	}
}

func (s *scene) fail(message string) {
	s.others = append(s.others, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: "pod"},
		Reason: v1alpha1.ReasonFailedPrepare, Message: message, Count: 2, FirstTimestamp: at(4), LastTimestamp: at(64),
	})
}

const general = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: general}
spec:
  podStatus: Faithful
  prepareWhen:
    matchExpressions: [{key: '.status.conditions[]? | select( .type == "dra.kwok.x-k8s.io/PrepareResources" ) | .status', operator: In, values: ["True"]}]
  failWhen:
    matchExpressions: [{key: '.status.conditions[]? | select( .type == "dra.kwok.x-k8s.io/PrepareResources" ) | .status', operator: In, values: ["False"]}]
`

// cluster reads the scene.
func (s *scene) cluster(t *testing.T) (*why.Cluster, *Sidecar, []*corev1.Pod) {
	t.Helper()
	objects := slices.Concat(s.others, []runtime.Object{s.pod, s.node})
	if s.class != nil {
		objects = append(objects, s.class)
	}
	if s.slice != nil {
		objects = append(objects, s.slice)
	}
	if s.claim != nil {
		objects = append(objects, s.claim)
	}
	documents, err := config.Decode("test", []byte(s.configuration))
	require.NoError(t, err)
	set, err := config.NewSet(documents)
	require.NoError(t, err)
	managed := &lifecycle.ManagedNodes{}
	require.NoError(t, managed.Complete())
	client := fake.NewClientset(objects...)
	known, pods, err := why.Read(t.Context(), client, "default")
	require.NoError(t, err)
	drivers, err := fleet.Live(t.Context(), client, set)
	require.NoError(t, err)
	added := AddTo(known, set, managed, drivers)
	known.Now = at(70).Time
	return known, added, pods
}

// TestAnswer has a Pod wait for everything there is to wait for.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(s *scene)
		state   why.State
		reason  string
		details []string
	}{
		"claim is missing":    {func(s *scene) { s.claim = nil }, why.Unscheduled, "claim c does not exist", nil},
		"class is missing":    {func(s *scene) { s.class = nil }, why.Unscheduled, `there is no DeviceClass "gpu": create it, or correct resourceclaim "c", request gpus`, nil},
		"template is missing": {func(s *scene) { s.pod.Spec.ResourceClaims[0] = fromTemplate }, why.Unscheduled, `there is no ResourceClaimTemplate "one": create it; claim gpu is not created yet from ResourceClaimTemplate one`, nil},
		"gates": {
			func(s *scene) { s.pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a/b"}} },
			why.Unscheduled, "spec.schedulingGates keep it from being scheduled: a/b; node n has what it asks for now",
			nil,
		},
		"devices": {
			func(s *scene) { s.claim.Spec.Devices.Requests[0].Exactly.Count = 3 },
			why.Unscheduled,
			"no node has as many devices: node n has the most, 2, of 2 devices of class gpu on 1 node; request gpus wants 3 on one node", nil,
		},
		"driver has published nothing": {
			func(s *scene) {
				s.class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "nic.example.com"`}}}
			},
			why.Unscheduled, "driver nic.example.com has published no devices: start its plugin; request gpus wants 1",
			[]string{"no template names driver nic.example.com"},
		},
		"template of the driver selects no node": {
			func(s *scene) {
				s.slice, s.node.Labels["kind"] = nil, "gpus"
				s.class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
			},
			why.Unscheduled, "driver gpu.example.com has published no devices: start its plugin; request gpus wants 1",
			[]string{"template t selects no node: kind is gpus, must be gpu (node n)"},
		},
		"admin access": {
			func(s *scene) {
				s.pod.Spec.ResourceClaims[0] = fromTemplate
				s.others = append(s.others, &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: s.claim.Spec}}, &corev1.Event{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: "pod"}, Reason: "FailedResourceClaimCreation",
					Message: "PodResourceClaim gpu: failed to create ResourceClaim: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace",
				})
			},
			why.Unscheduled, "PodResourceClaim gpu: failed to create ResourceClaim: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace; " +
				"claim gpu is not created yet from ResourceClaimTemplate one; node n has what it asks for now",
			nil,
		},
		"capacity": {
			func(s *scene) {
				s.slice.Spec.Devices = []resourcev1.Device{{Name: "nic", AllowMultipleAllocations: new(true), Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
					"bandwidth": {Value: resource.MustParse("10G")},
				}}}
				s.claim.Spec.Devices.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
					"bandwidth": resource.MustParse("12G"),
				}}
			},
			why.Unscheduled,
			"capacity bandwidth of the free devices is too small, 12G wanted and at most 10G to be had; " +
				"1 device of class gpu on 1 node, 0 left; request gpus wants 1; nearest: node n lacks 1", nil,
		},
		"selector fails": {
			func(s *scene) {
				s.claim.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
					Expression: "device.driver == 'gpu.example.com' &&\n  device.attributes['gpu.example.com'].index == 1\n",
				}}}
			},
			why.Unscheduled,
			"the selector `device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].index == 1` of the request " +
				"fails for device gpu.example.com/n/gpu-0: it has no attribute gpu.example.com/index (no such key: index): guard it with has(), or with .? and orValue()", nil,
		},
		"extended resources": {
			func(s *scene) {
				s.claim, s.class.Spec.ExtendedResourceName, s.pod.Spec.ResourceClaims = nil, new("example.com/gpu"), nil
				s.pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/gpu": resource.MustParse("3")}}}}
			},
			why.Unscheduled,
			"no node has as many devices: node n has the most, 2, of 2 devices of class gpu on 1 node; request container-0-request-0 wants 3 on one node", nil,
		},
		"node": {
			func(s *scene) { s.node.Spec.Unschedulable = true },
			why.Unscheduled, "no node may have the Pod, whatever its devices: node n: the node is cordoned", nil,
		},
		"nothing that is known": {
			func(s *scene) {
				s.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}
			},
			why.Unscheduled, "node n has what it asks for now",
			[]string{"the scheduler has not tried again since, or something keeps the Pod away that is not considered here, such as volumes"},
		},
		"binding conditions": {
			func(s *scene) {
				s.allocate()
				s.claim.Status.Allocation.Devices.Results[0].BindingConditions = []string{"a/attached"}
			},
			why.Binding, "binding conditions of its devices are not True: a/attached of device gpu.example.com/n/gpu-0 (claim c)",
			[]string{
				"kwok-dra sets those of driver gpu.example.com at 2026-01-02T03:04:07Z, 0s after the allocation (bindingDelay)",
				"kube-scheduler gives the devices back at 2026-01-02T03:14:07Z, by its default bindingTimeout of 10m0s; another one is in its configuration",
			},
		},
		"no kwok-dra": {
			func(s *scene) { s.bind() },
			why.Preparing, "not prepared yet: c",
			[]string{"nothing keeps kwok-dra from preparing them now: does it run, and act for node n?"},
		},
		"no template": {
			func(s *scene) { s.bind(); s.configuration = "" },
			why.Preparing, "no template names driver gpu.example.com, and whether its plugin is registered with node n is not known: give kwok-dra's templates with -f, or its --plugins-dir", nil,
		},
		"no slices": {
			func(s *scene) { s.bind(); s.slice = nil; s.node.Labels["kind"] = "gpus" },
			why.Preparing, "DRA driver gpu.example.com is not registered: template t does not select the node: kind is gpus, must be gpu (node n)", nil,
		},
		"nothing is published": {
			func(s *scene) { s.bind(); s.slice = nil },
			why.Preparing, "DRA driver gpu.example.com is not registered: driver gpu.example.com has published nothing on node n yet: kubectl describe node n says what fails", nil,
		},
		"nothing is published, and the event says so": {
			func(s *scene) {
				s.bind()
				s.slice = nil
				s.fail("Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.example.com is not registered")
			},
			why.Preparing, "Failed to prepare dynamic resources: prepare dynamic resources: DRA driver gpu.example.com is not registered: " +
				"driver gpu.example.com has published nothing on node n yet: kubectl describe node n says what fails",
			[]string{
				"it has failed 2 times since 2026-01-02T03:04:09Z, the last time at 2026-01-02T03:05:09Z",
				"the next try is between 2026-01-02T03:06:09Z and 2026-01-02T03:06:39Z (retryInterval 1m0s), or at once when the Pod is edited",
			},
		},
		"plugin is gone": {
			func(s *scene) {
				s.bind()
				s.node.Status.Conditions = append(s.node.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.PluginRegistered, Status: corev1.ConditionFalse, Reason: v1alpha1.PluginCrashed})
			},
			why.Preparing, "DRA driver gpu.example.com is not registered: node n has the condition dra.kwok.x-k8s.io/PluginRegistered=False (PluginCrashed): a Stage or you set it to True", nil,
		},
		"node is not fake": {
			func(s *scene) { s.bind(); s.node.Annotations = nil },
			why.Preparing, "node n is not fake, by annotations kwok.x-k8s.io/node=fake: its own kubelet prepares the claims, and kwok-dra does not", nil,
		},
		"Stage": {
			func(s *scene) {
				s.bind()
				s.configuration += general
				s.pod.Annotations = map[string]string{"pod-prepare.stage.kwok.x-k8s.io/delay": "5m"}
			},
			why.Preparing, "prepareWhen of the KwokDRAConfiguration does not select the Pod yet: it has no condition dra.kwok.x-k8s.io/PrepareResources, which the Stage pod-prepare writes after its delay of 5m", nil,
		},
		"failure": {
			func(s *scene) {
				s.bind()
				s.configuration += general
				s.pod.Status.Conditions = append(s.pod.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PrepareResources, Status: corev1.ConditionFalse, Message: "disk is full"})
				s.fail("Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: disk is full")
			},
			why.Preparing, "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: disk is full",
			[]string{
				"it has failed 2 times since 2026-01-02T03:04:09Z, the last time at 2026-01-02T03:05:09Z",
				"the next try is between 2026-01-02T03:06:09Z and 2026-01-02T03:06:39Z (retryInterval 1m0s), or at once when the Pod is edited",
			},
		},
		"driver Pod": {
			func(s *scene) {
				s.bind()
				s.configuration = strings.Replace(s.configuration, "  devices:", "  driverPod: {namespace: d, selector: {matchLabels: {app: d}}}\n  devices:", 1)
				s.others = append(s.others, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "d-0", Labels: map[string]string{"app": "d"}}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "d"}}},
				})
			},
			why.Preparing, "DRA driver gpu.example.com is not registered: template t needs a driver Pod on node n that is Ready, and this is not: d/d-0", nil,
		},
		"reservation": {
			func(s *scene) { s.bind(); s.claim.Status.ReservedFor = nil },
			why.Preparing, "claim c is not reserved for the Pod", nil,
		},
		"containers": {
			func(s *scene) {
				s.bind()
				s.pod.Status.Conditions[1].Status = corev1.ConditionTrue
				s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			},
			why.Starting, "its claims are prepared; container main waits: ImagePullBackOff", nil,
		},
		"runs":        {func(s *scene) { s.bind(); s.pod.Status.Phase = corev1.PodRunning }, why.Running, "it runs on node n", nil},
		"ended":       {func(s *scene) { s.bind(); s.pod.Status.Phase = corev1.PodSucceeded }, why.Ended, "it has ended: Succeeded", nil},
		"no claims":   {func(s *scene) { s.pod.Spec.ResourceClaims = nil }, why.Unscheduled, "node n has what it asks for now", []string{"it has no ResourceClaim and no extended resource of a DeviceClass, so it waits for no device"}},
		"terminating": {func(s *scene) { s.pod.DeletionTimestamp, s.pod.Finalizers = new(at(5)), []string{"a/b"} }, why.Terminating, "it stays until its finalizers are removed: a/b", []string{"it keeps claim c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.change(s)
			known, _, _ := s.cluster(t)
			answer := known.Answer(t.Context(), s.pod)
			require.Equal(t, test.state, answer.State)
			require.Equal(t, test.reason, answer.Reason)
			require.Equal(t, test.details, answer.Details)
		})
	}
}

var fromTemplate = corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: new("one")}

// TestList has Pods of a Job that wait for the same together.
func TestList(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.claim.Spec.Devices.Requests[0].Exactly.Count = 3
	for i := range 4 {
		pod, claim := s.pod.DeepCopy(), s.claim.DeepCopy()
		pod.Name, pod.UID = fmt.Sprintf("train-%d", i), types.UID(fmt.Sprintf("train-%d", i))
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "job", Controller: new(true)}}
		claim.Name = pod.Name + "-gpu-abcde"
		pod.Spec.ResourceClaims[0].ResourceClaimName = &claim.Name
		s.others = append(s.others, pod, claim)
	}
	s.pod.Status.Phase = corev1.PodFailed
	known, _, pods := s.cluster(t)
	groups := why.Groups(known.Waiting(t.Context(), pods))
	require.Len(t, groups, 1)
	require.Equal(t, why.Unscheduled, groups[0].State)
	require.Len(t, groups[0].Pods, 4)
	var out strings.Builder
	require.NoError(t, why.PrintGroups(&out, groups, known.Now, "kwok-dractl why"))
	require.Equal(t, `4 Pods wait for a node (70s): no node has as many devices: node n has the most, 2, of 2 devices of class gpu on 1 node; request gpus wants 3 on one node
  - 4 Pods of Job train, such as default/train-0

Details of one: kwok-dractl why -n default train-0
`, out.String())
}
