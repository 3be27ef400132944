package driverpods

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/devices"
	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// Pod is what the cache keeps of a Pod in which the plugin of a driver runs. What templates
// see is kept once for all equal Pods: those of a DaemonSet differ in a few words only.
type Pod struct {
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

// NewPod makes what the cache keeps of a Pod. The container is the plugin's, or empty for the first one.
func NewPod(pod *corev1.Pod, container string) *Pod {
	made := &Pod{Meta: cached.MetaOf(pod), Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.UTC()}
	shown := devices.PodData{Labels: pod.Labels, Annotations: pod.Annotations, Env: map[string]string{}}
	containers := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return container == "" || c.Name == container })
	if i < 0 {
		made.Missing = container
	} else {
		plugin := &containers[i]
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
func (p *Pod) observeStatus(pod *corev1.Pod, container string) {
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
func (p *Pod) Same(other *Pod) bool {
	a, b := *p, *other
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
}

// dataForTemplates is the Pod as Go templates see it.
func (p *Pod) dataForTemplates() (any, error) {
	shown := map[string]any{}
	if err := json.Unmarshal([]byte(p.shown.Value()), &shown); err != nil {
		return nil, fmt.Errorf("decode pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	shown["name"], shown["namespace"], shown["uid"] = p.Name, p.Namespace, string(p.UID)
	return shown, nil
}
