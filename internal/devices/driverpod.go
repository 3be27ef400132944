package devices

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// DriverPod is what the cache keeps of a Pod in which the plugin of a driver runs. What templates
// see is kept once for all equal Pods: those of a DaemonSet differ in a few words only.
type DriverPod struct {
	cached.Meta
	Node    string
	Created time.Time
	// Connected reports whether the kubelet has a connection to the plugin: it has one while the
	// container runs. Ready reports whether the Pod has been Ready since then: one that no longer
	// is has published its pool.
	Connected, Ready bool
	// Registered reports whether the plugin is registered with the kubelet. One that has crashed
	// is, since it has left its socket; one that was told to end is not.
	Registered bool
	// Lost is when the kubelet lost the connection. It is zero while there is one, before
	// the first one, and where the time is not known.
	Lost time.Time
	// Missing is the container that the template names and the Pod does not have.
	Missing string

	shown unique.Handle[string]
}

// shownPod is a driver Pod as Go templates see it.
type shownPod struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         types.UID         `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Env         map[string]string `json:"env"`
	Args        []string          `json:"args"`
	Image       string            `json:"image"`
	Tag         string            `json:"tag"`
}

// samplePod stands in for a driver Pod when templates are checked.
var samplePod = shownPod{
	Name: "driver-x", Namespace: "driver", UID: "00000000-0000-0000-0000-000000000000",
	Labels: map[string]string{"app": "driver"}, Annotations: map[string]string{}, Env: map[string]string{"NAME": "value"},
	Args: []string{"--v=2"}, Image: "registry.example.com/driver:v1", Tag: "v1",
}

// NewDriverPod makes a DriverPod of a Pod. The container is the plugin's, or empty for
// the first one.
func NewDriverPod(pod *corev1.Pod, container string) *DriverPod {
	made := &DriverPod{Meta: cached.MetaOf(pod), Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.UTC()}
	shown := shownPod{Labels: pod.Labels, Annotations: pod.Annotations, Env: map[string]string{}}
	plugin := containerOf(pod, container)
	if plugin == nil {
		made.Missing = container
	} else {
		container = plugin.Name
		shown.Args, shown.Image, shown.Tag = plugin.Args, plugin.Image, tagOf(plugin.Image)
		for _, variable := range plugin.Env {
			if variable.ValueFrom == nil {
				shown.Env[variable.Name] = variable.Value
			}
		}
	}
	made.observeStatus(pod, container)
	encoded, err := json.Marshal(shown)
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err))
	}
	made.shown = unique.Make(string(encoded))
	return made
}

// containerOf finds a container by its name, or the first one for no name. It returns nil if there
// is none.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	all := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return name == "" || c.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// tagOf returns the tag of an image as the container runtime reads it.
func tagOf(image string) string {
	image, _, digest := strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !tagged && !digest && image != "" {
		return "latest"
	}
	return tag
}

// observeStatus works out what the kubelet knows of the plugin in a container, by the status of the
// Pod.
func (p *DriverPod) observeStatus(pod *corev1.Pod, container string) {
	state := stateOf(pod, container)
	runs := pod.Status.Phase == corev1.PodRunning
	var deleted time.Time // when the kubelet told the process to end: the Pod's own timestamp is when its grace period is over
	if pod.DeletionTimestamp != nil {
		deleted = pod.DeletionTimestamp.UTC()
		if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
			deleted = deleted.Add(-time.Duration(*seconds) * time.Second)
		}
	}
	p.Connected = runs && state.running && deleted.IsZero() && p.Missing == ""
	p.Registered = runs && state.started && deleted.IsZero()
	notReady := readyCondition(pod, corev1.ConditionFalse)
	p.Ready = p.Connected && (readyCondition(pod, corev1.ConditionTrue) != nil || notReady != nil && !state.since.IsZero() && state.since.Before(notReady.LastTransitionTime.Time))
	if p.Connected || !state.started {
		return
	}
	p.Lost = state.ended
	if p.Lost.IsZero() && !state.running && notReady != nil {
		p.Lost = notReady.LastTransitionTime.UTC()
	}
	if !deleted.IsZero() && (p.Lost.IsZero() || deleted.Before(p.Lost)) {
		p.Lost = deleted
	}
}

func readyCondition(pod *corev1.Pod, status corev1.ConditionStatus) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == status })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// containerState is what the status of a Pod says of a container.
type containerState struct {
	// running reports whether it runs, and started whether it ever has.
	running, started bool
	// since is when it began to run, and ended when it ended. They are zero where the
	// status does not say so.
	since, ended time.Time
}

// stateOf reads the state of a container. One that the status does not have runs as long as the Pod
// does.
func stateOf(pod *corev1.Pod, container string) containerState {
	all := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return containerState{running: pod.Status.Phase == corev1.PodRunning, started: pod.Status.Phase != corev1.PodPending && pod.Status.Phase != ""}
	}
	if running := all[i].State.Running; running != nil {
		return containerState{running: true, started: true, since: running.StartedAt.UTC()}
	}
	for _, terminated := range []*corev1.ContainerStateTerminated{all[i].State.Terminated, all[i].LastTerminationState.Terminated} {
		if terminated != nil {
			return containerState{started: true, ended: terminated.FinishedAt.UTC()}
		}
	}
	return containerState{}
}

// Same reports whether two versions of a Pod differ in nothing but their resource versions.
func (p *DriverPod) Same(other *DriverPod) bool {
	a, b := *p, *other
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
}

// dataForTemplates is the Pod as Go templates see it.
func (p *DriverPod) dataForTemplates() (any, error) {
	shown := map[string]any{}
	if err := json.Unmarshal([]byte(p.shown.Value()), &shown); err != nil {
		return nil, fmt.Errorf("decode pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	shown["name"], shown["namespace"], shown["uid"] = p.Name, p.Namespace, string(p.UID)
	return shown, nil
}
