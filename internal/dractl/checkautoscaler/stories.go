package checkautoscaler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/checkscheduler/story"
)

// accountName is the ServiceAccount of the Pods: no controller has to make one.
const accountName = "pods"

// keepAnnotations forbid autoscalers to move a Pod.
var keepAnnotations = map[string]string{
	"karpenter.sh/do-not-disrupt":                    "true",
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}

// author draws a story for groups of nodes. A story has at most five Pods at a time.
type author struct {
	*rand.Rand

	groups []*group
	story  *story.Story
	// fitting are the names of Pods that are meant to fit, and all are those of all Pods that are there.
	fitting, all []string
	made         int
}

// newStory draws a story from a seed: Pods that fit a group come, beside some that fit none; some go, and others may
// come; and in the end all have gone. A Pod that fits none comes before one that fits, so the autoscaler has looked at
// both once the latter has its node.
func newStory(id string, seed int64, groups []*group) *story.Story {
	a := &author{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), groups: groups, story: &story.Story{ID: id, Seed: seed}}
	a.addSetting()
	a.addPods(a.IntN(3), max(1, a.IntN(4)))
	a.removePods(a.fitting[:1+a.IntN(max(1, len(a.fitting)-1))]) // one stays, whose node must stay
	if a.IntN(2) == 0 {
		a.addPods(0, 1+a.IntN(2))
	}
	if len(a.all) > 0 {
		a.removePods(a.all)
	}
	return a.story
}

func (a *author) metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: a.story.ID, Labels: map[string]string{story.Label: a.story.ID}}
}

// classOf is the name of the DeviceClass of a driver.
func (a *author) classOf(driver string) string {
	return a.story.ID + "-" + strings.ReplaceAll(driver, ".", "-")
}

// addSetting adds the namespace, and a class for each driver.
func (a *author) addSetting() {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: a.metaOf(a.story.ID)}
	namespace.Namespace = ""
	step := story.Step{Say: "A namespace, and a DeviceClass for each driver of the groups.", Create: story.Objects{
		namespace, &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: a.metaOf(accountName)},
	}}
	drivers := map[string]bool{}
	for _, g := range a.groups {
		for _, driver := range g.drivers() {
			drivers[driver] = true
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		class := &resourcev1.DeviceClass{TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"}, ObjectMeta: a.metaOf(a.classOf(driver))}
		class.Namespace = ""
		class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
		step.Create = append(step.Create, class)
	}
	a.story.Steps = append(a.story.Steps, step)
}

// addPods has Pods come that are meant to fit no group, and then those that are meant to fit one.
func (a *author) addPods(misfits, fitting int) {
	if misfits > 0 {
		step := story.Step{Say: "Pods come that fit no group."}
		for range misfits {
			step.Create = append(step.Create, a.newMisfit()...)
		}
		a.story.Steps = append(a.story.Steps, step)
	}
	step := story.Step{Say: "Pods come that fit a group.", Rest: true}
	for range fitting {
		g := a.groups[a.IntN(len(a.groups))]
		var requests []resourcev1.DeviceRequest
		for _, driver := range g.drivers() {
			if len(requests) > 0 && a.IntN(2) == 0 {
				continue
			}
			count := len(devicesByDriver(g.Slices)[driver])
			wanted := []int{1, (count + 1) / 2, count}[a.IntN(3)]
			requests = append(requests, a.newRequest(driver, wanted))
		}
		objects := a.newPod(g, a.IntN(2) == 0, requests)
		a.fitting = append(a.fitting, a.all[len(a.all)-1])
		step.Create = append(step.Create, objects...)
	}
	a.story.Steps = append(a.story.Steps, step)
}

func (a *author) newRequest(driver string, count int) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: strings.ReplaceAll(driver, ".", "-"), Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: a.classOf(driver), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(min(count, resourcev1.AllocationResultsMaxSize)),
	}}
}

// newMisfit makes a Pod that wants one device more than a node of its group has, or a device that none has.
func (a *author) newMisfit() story.Objects {
	g := a.groups[a.IntN(len(a.groups))]
	driver := g.drivers()[a.IntN(len(g.drivers()))]
	most := 0
	for _, other := range a.groups {
		most = max(most, len(devicesByDriver(other.Slices)[driver]))
	}
	if most < resourcev1.AllocationResultsMaxSize && a.IntN(2) == 0 {
		return a.newPod(g, a.IntN(2) == 0, []resourcev1.DeviceRequest{a.newRequest(driver, most+1)})
	}
	request := a.newRequest(driver, 1)
	request.Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(`"missing" in device.attributes[%q]`, driver)}}}
	return a.newPod(g, false, []resourcev1.DeviceRequest{request})
}

// newPod makes a Pod with its claim. It may select the nodes of a group.
func (a *author) newPod(g *group, selectsGroup bool, requests []resourcev1.DeviceRequest) story.Objects {
	a.made++
	name := fmt.Sprintf("pod-%d", a.made)
	a.all = append(a.all, name)
	claim := &resourcev1.ResourceClaim{TypeMeta: metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim"}, ObjectMeta: a.metaOf(name)}
	claim.Spec.Devices.Requests = requests
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: a.metaOf(name)}
	pod.Annotations = keepAnnotations
	pod.Spec = corev1.PodSpec{
		ServiceAccountName: accountName, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(0)),
		Containers:     []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices"}}}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: new(name)}},
	}
	for _, taint := range g.Node.Spec.Taints {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
	}
	if selectsGroup {
		pod.Spec.NodeSelector = g.Node.Labels
	}
	return story.Objects{claim, pod}
}

// removePods deletes Pods and their claims.
func (a *author) removePods(names []string) {
	names = slices.Clone(names)
	step := story.Step{Say: "These Pods go: " + strings.Join(names, ", ") + ".", Rest: true}
	isGone := func(name string) bool { return slices.Contains(names, name) }
	for _, name := range names {
		step.Delete = append(step.Delete, story.Deletion{Ref: story.Ref{APIVersion: "v1", Kind: "Pod", Name: name}})
	}
	for _, name := range names {
		step.Delete = append(step.Delete, story.Deletion{Ref: story.Ref{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceClaim", Name: name}})
	}
	a.all, a.fitting = slices.DeleteFunc(a.all, isGone), slices.DeleteFunc(a.fitting, isGone)
	a.story.Steps = append(a.story.Steps, step)
}
