package claim

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/history"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/usage"
	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// Story is what a claim has, who holds it, and what has happened to it.
type Story struct {
	*usage.Claim
	// Holders are those for whom the claim is reserved: it keeps its devices until they release it.
	Holders    []Holder       `json:"holders"`
	Finalizers []string       `json:"finalizers,omitempty"`
	Steps      []history.Step `json:"steps"`
}

// Holder is one for whom a claim is reserved.
type Holder struct {
	// Name is as in pods/train.
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	// State says what a Pod does, or that it is gone.
	State string `json:"state"`
}

// tell makes the story of a claim of what is known of its Pods, events and devices.
func tell(read *history.Story, cluster *usage.Cluster) *Story {
	story := &Story{Claim: cluster.DescribeClaim(read.Claim), Holders: []Holder{}, Finalizers: read.Claim.Finalizers, Steps: read.ListSteps()}
	for _, consumer := range read.Claim.Status.ReservedFor {
		holder := Holder{Name: consumer.Resource + "/" + consumer.Name}
		if facts.IsPod(consumer) {
			holder.Node, holder.State = describePod(read.Pods[consumer.Name], consumer, cluster.IsWithoutPods)
		}
		story.Holders = append(story.Holders, holder)
	}
	return story
}

func describePod(pod *corev1.Pod, consumer resourcev1.ResourceClaimConsumerReference, isWithoutPods bool) (node, state string) {
	switch {
	case pod == nil && isWithoutPods:
		return "", "not seen"
	case pod == nil:
		return "", "gone: the Pod does not exist"
	case pod.UID != consumer.UID:
		return "", "gone: another Pod has its name"
	case pod.DeletionTimestamp != nil:
		return pod.Spec.NodeName, "is being deleted"
	}
	return pod.Spec.NodeName, string(pod.Status.Phase)
}

// describeState is the answer in one line.
func (s *Story) describeState(now time.Time) string {
	text := fmt.Sprintf("Claim %s/%s is %s", s.Namespace, s.Name, s.State)
	if s.Since != nil {
		text += " since " + duration.HumanDuration(now.Sub(*s.Since))
	}
	if len(s.Devices) > 0 {
		var devices []string
		for _, device := range s.Devices {
			name := device.ID()
			if device.Product != "" {
				name += " (" + device.Product + ")"
			}
			devices = append(devices, name)
		}
		text += ": " + strings.Join(devices, ", ")
	}
	if len(s.Pods) > 0 && s.State != usage.Waiting {
		text += " for " + nounOf(s.Pods) + strings.Join(s.Pods, ", ")
	}
	return text
}

func nounOf(pods []string) string {
	if len(pods) == 1 {
		return "Pod "
	}
	return "Pods "
}

// describeStory is the state, and the lines before the steps: why, who holds the claim, and what keeps it from being
// deleted.
func (s *Story) describeStory(now time.Time) string {
	lines := []string{s.describeState(now)}
	if s.State == usage.Waiting {
		verb := "wait"
		if len(s.Pods) == 1 {
			verb = "waits"
		}
		lines = append(lines, fmt.Sprintf("  %s%s %s for it: kubectl dra why %s -n %s", nounOf(s.Pods), strings.Join(s.Pods, ", "), verb, s.Pods[0], s.Namespace))
	}
	if s.Reason != "" {
		lines = append(lines, "  "+s.Reason)
	}
	for _, holder := range s.Holders {
		line := "  held by " + holder.Name
		if holder.Node != "" {
			line += " on node " + holder.Node
		}
		if holder.State != "" {
			line += ": " + holder.State
		}
		lines = append(lines, line)
	}
	if len(s.Finalizers) > 0 {
		lines = append(lines, "  finalizers: "+strings.Join(s.Finalizers, ", "))
	}
	return strings.Join(lines, "\n") + "\n"
}
