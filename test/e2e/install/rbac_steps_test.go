package install

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/test/cluster"
)

// step is something that the sidecar does.
type step struct {
	// after are the steps that must have been before.
	after []string
	// happen has it happen.
	happen func(*player)
	// missing says what is missing for it to have happened.
	missing func(*player) string
}

// The API groups of the permissions.
const (
	core = ""
	dra  = "resource.k8s.io"
	ours = "dra.kwok.x-k8s.io"
)

// stepOf names the step that needs a permission.
var stepOf = map[permission]string{
	{core, "configmaps", "list"}:                            "start",
	{core, "configmaps", "watch"}:                           "start",
	{dra, "resourceslices", "list"}:                         "start",
	{dra, "resourceslices", "watch"}:                        "start",
	{dra, "resourceslices", "create"}:                       "publish",
	{dra, "resourceslices", "patch"}:                        "repair",
	{dra, "resourceslices", "get"}:                          "adopt",
	{dra, "resourceslices", "delete"}:                       "retire",
	{dra, "resourceslices", "deletecollection"}:             "wipe",
	{dra, "resourceclaims", "list"}:                         "start",
	{dra, "resourceclaims", "watch"}:                        "start",
	{dra, "resourceclaims", "get"}:                          "refuse",
	{dra, "resourceclaims/status", "patch"}:                 "prepare",
	{dra, "resourceclaims/driver", "arbitrary-node:patch"}:  "prepare",
	{dra, "resourceclaims/status", "update"}:                "update",
	{dra, "resourceclaims/driver", "arbitrary-node:update"}: "update",
	{dra, "deviceclasses", "list"}:                          "explain",
	{dra, "resourceclaimtemplates", "list"}:                 "explain",
	{dra, "devicetaintrules", "list"}:                       "start",
	{dra, "devicetaintrules", "watch"}:                      "start",
	{ours, "resourcepooltemplates", "list"}:                 "start",
	{ours, "resourcepooltemplates", "watch"}:                "start",
	{ours, "resourcepooltemplates/status", "patch"}:         "report",
	{ours, "kwokdraconfigurations", "list"}:                 "start",
	{ours, "kwokdraconfigurations", "watch"}:                "start",
}

func steps() map[string]step {
	return map[string]step{
		"start":   {nil, func(*player) {}, (*player).notReady},
		"publish": {[]string{"start"}, (*player).createNode, func(p *player) string { return p.notPublished("red") }},
		"report":  {[]string{"start", "publish"}, (*player).createTemplate, (*player).notReported},
		"repair":  {[]string{"start", "publish"}, func(p *player) { p.label("flavor", "blue") }, func(p *player) string { return p.notPublished("blue") }},
		"adopt":   {[]string{"start", "publish"}, (*player).takeLabelOfSlice, (*player).notLabelled},
		"prepare": {[]string{"start", "publish"}, (*player).createPod, (*player).notPrepared},
		"update":  {[]string{"start", "publish"}, (*player).createPodWithParameters, (*player).notUpdated},
		"refuse":  {[]string{"start", "publish"}, (*player).createPodWithoutAllocation, (*player).notRefusedPod},
		"explain": {[]string{"start", "publish"}, (*player).createWaitingPod, (*player).notExplained},
		"retire":  {[]string{"start", "publish"}, func(p *player) { p.label("devices", "no") }, (*player).notRetired},
		"wipe":    {[]string{"start", "publish"}, (*player).loseRealDriver, (*player).notWiped},
	}
}

// playerNode is the node that only the player manages.
type playerNode struct{ account }

func (p *playerNode) createNode() {
	_, err := p.client.CoreV1().Nodes().Create(p.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: p.name, Labels: map[string]string{"player": p.name, "devices": "yes", "flavor": "red"},
	}}, metav1.CreateOptions{})
	require.NoError(p, err)
}

func (p *playerNode) label(key, value string) {
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, key, value)
	_, err := p.client.CoreV1().Nodes().Patch(p.Context(), p.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(p, err)
}

func (p *playerNode) slices() []resourcev1.ResourceSlice {
	list, err := p.client.ResourceV1().ResourceSlices().List(p.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + p.name})
	require.NoError(p, err)
	return list.Items
}

func (p *playerNode) notPublished(flavor string) string {
	for _, slice := range p.slices() {
		if len(slice.Spec.Devices) == 2 && *slice.Spec.Devices[0].Attributes["flavor"].StringValue == flavor {
			return ""
		}
	}
	return "no slice with two devices that are " + flavor
}

const managedBy = "dra.kwok.x-k8s.io/managed-by"

func (p *playerNode) takeLabelOfSlice() {
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, managedBy)
	_, err := p.client.ResourceV1().ResourceSlices().Patch(p.Context(), p.slices()[0].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(p, err)
}

func (p *playerNode) notLabelled() string {
	for _, slice := range p.slices() {
		if slice.Labels[managedBy] == "" {
			return "slice " + slice.Name + " has no label"
		}
	}
	return ""
}

func (p *playerNode) notRetired() string {
	if n := len(p.slices()); n > 0 {
		return fmt.Sprintf("%d slices are there", n)
	}
	return ""
}

// realDriver is a driver that has no template.
const realDriver = "real.example.com"

// loseRealDriver has a real driver be gone that has left a slice.
func (p *playerNode) loseRealDriver() {
	_, err := p.client.ResourceV1().ResourceSlices().Create(p.Context(), &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{GenerateName: p.name + "-"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: realDriver, NodeName: &p.name, Pool: resourcev1.ResourcePool{Name: p.name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "device"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	patch := `{"status": {"conditions": [{"type": "dra.kwok.x-k8s.io/PluginRegistered", "status": "False", "reason": "PluginUnregistered"}]}}`
	_, err = p.client.CoreV1().Nodes().Patch(p.Context(), p.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(p, err)
}

func (p *playerNode) notWiped() string {
	for _, slice := range p.slices() {
		if slice.Spec.Driver == realDriver {
			return "slice " + slice.Name + " is there"
		}
	}
	return ""
}

// createTemplate creates one as a custom resource that selects only the player's
// node. The other sidecars see no such node: the status that this one would write
// differs from theirs, so that it writes even if they are faster.
func (p *player) createTemplate() {
	template := fmt.Sprintf(`{"apiVersion": "dra.kwok.x-k8s.io/v1alpha1", "kind": "ResourcePoolTemplate", "metadata": {"name": %[1]q}, "spec": {
		"driver": "nic.example.com", "devices": [{"name": "nic"}],
		"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
			{"key": "player", "operator": "In", "values": [%[1]q]}, {"key": "devices", "operator": "In", "values": ["yes"]}]}]}}}`, p.name)
	_, err := p.cluster.KubectlInput(p.Context(), strings.NewReader(template), "apply", "-f", "-")
	require.NoError(p, err)
}

// notReported asks what the sidecar itself has written: others write, too.
func (p *player) notReported() string {
	for _, event := range p.audited() {
		if event.ObjectRef.Resource == "resourcepooltemplates" && event.ObjectRef.Name == p.name && event.ResponseStatus.Code == http.StatusOK {
			return ""
		}
	}
	return "no status of template " + p.name + " was written"
}

// playerPods are the Pods of the player.
type playerPods struct{ account }

func (p *playerPods) createPod() {
	claim := p.createClaim(p.name, nil)
	p.createPodWith(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Spec:       corev1.PodSpec{NodeSelector: map[string]string{"player": p.name}},
	}, claim)
}

// createPodWithParameters creates one with a claim that no patch can write, since its
// parameters have spaces.
func (p *playerPods) createPodWithParameters() {
	claim := p.createClaim(p.name+"-parameters", []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"kind": "Config"}`)}},
	}}})
	p.createPodWith(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec:       corev1.PodSpec{NodeSelector: map[string]string{"player": p.name}},
	}, claim)
}

func (p *playerPods) createClaim(name string, config []resourcev1.DeviceClaimConfiguration) string {
	_, err := p.client.ResourceV1().ResourceClaims("default").Create(p.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com"},
		}}, Config: config}},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	return name
}

func (p *playerPods) createPodWith(pod *corev1.Pod, claim string) {
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	_, err := p.client.CoreV1().Pods("default").Create(p.Context(), pod, metav1.CreateOptions{})
	require.NoError(p, err)
}

func (p *playerPods) notPrepared() string { return p.without(p.name) }

func (p *playerPods) notUpdated() string { return p.without(p.name + "-parameters") }

// without says that a claim has no entries.
func (p *playerPods) without(name string) string {
	claim, err := p.client.ResourceV1().ResourceClaims("default").Get(p.Context(), name, metav1.GetOptions{})
	require.NoError(p, err)
	if len(claim.Status.Devices) == 0 {
		return "claim " + name + " is not prepared"
	}
	return ""
}

// createPodWithoutAllocation creates one that passes by the scheduler.
func (p *playerPods) createPodWithoutAllocation() {
	claim := p.createClaim(p.name+"-early", nil)
	p.createPodWith(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-early"}, Spec: corev1.PodSpec{NodeName: p.name}}, claim)
}

func (p *playerPods) notRefusedPod() string {
	list, err := p.client.CoreV1().Events("default").List(p.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.name=" + p.name + "-early,reason=FailedPrepareDynamicResources",
	})
	require.NoError(p, err)
	for _, event := range list.Items {
		if strings.Contains(event.Message, "is not allowed to use ResourceClaim") {
			return ""
		}
	}
	return fmt.Sprintf("no event says that Pod %s-early may not use its claim: %v", p.name, list.Items)
}

// createWaitingPod creates one that wants more devices than there are, and has the page explain it.
func (p *player) createWaitingPod() {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-waits"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 32,
	}}}
	_, err := p.client.ResourceV1().ResourceClaims("default").Create(p.Context(), claim, metav1.CreateOptions{})
	require.NoError(p, err)
	p.createPodWith(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}, claim.Name)
	p.notExplained()
}

func (p *player) notExplained() string {
	status, err := p.sidecar.get(p.Context(), corev1.URISchemeHTTP, "/api/why?namespace=default&pod="+p.name+"-waits", "")
	if err != nil || status != http.StatusOK {
		return fmt.Sprintf("the page does not explain Pod %s-waits: status %d, %v", p.name, status, err)
	}
	return ""
}

// audited are the requests of the sidecar that the API server has answered.
func (p *player) audited() []cluster.AuditEvent {
	p.Helper()
	user := "system:serviceaccount:kube-system:" + p.name
	events, err := p.cluster.Audited(func(event *cluster.AuditEvent) bool { return event.User.Username == user })
	require.NoError(p, err)
	return events
}

// refusals are the answers that something is forbidden. That also stands in the
// one to a write of a claim without the right to write for its driver, which is no
// request of its own. One about the allocation is no lack of a right: it says that
// a patch cannot write this claim.
func (p *player) refusals() []cluster.AuditEvent {
	return slices.DeleteFunc(p.audited(), func(event cluster.AuditEvent) bool {
		return strings.Contains(event.ResponseStatus.Message, "resourceclaims/binding") ||
			event.ResponseStatus.Code != http.StatusForbidden && !strings.Contains(event.ResponseStatus.Message, "is forbidden")
	})
}

// notRefused says so while the API server has not refused that many requests for
// want of the permission.
func (p *player) notRefused(want permission, times int) string {
	resource, subresource, _ := strings.Cut(want.resource, "/")
	for _, event := range p.refusals() {
		of, message := event.ObjectRef, event.ResponseStatus.Message
		if of.APIGroup == want.group && of.Resource == resource && of.Subresource == subresource && event.Verb == want.verb ||
			strings.Contains(message, want.resource) && strings.Contains(message, want.verb) {
			times--
		}
	}
	if times > 0 {
		return fmt.Sprintf("the API server has not refused %s %d times more", want, times)
	}
	return ""
}
