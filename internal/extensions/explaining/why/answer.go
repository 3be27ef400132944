package why

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
)

// State is how far a Pod is on its way.
type State string

// The states, in the order of a Pod's life.
const (
	// Unscheduled says that the Pod has no node.
	Unscheduled State = "Unscheduled"
	// Binding says that it has devices, which have to be ready before it gets its node.
	Binding State = "Binding"
	// Preparing says that it has a node, and its claims are not prepared.
	Preparing State = "Preparing"
	// Starting says that its claims are prepared, and it does not run.
	Starting State = "Starting"
	// Running, Ended and Terminating Pods wait for no device.
	Running     State = "Running"
	Ended       State = "Ended"
	Terminating State = "Terminating"
	// Unallocated and Allocated are those of a claim.
	Unallocated State = "Unallocated"
	Allocated   State = "Allocated"
)

// waits are the states in which a Pod waits, and what for.
var waits = map[State]string{
	Unscheduled: "for a node",
	Binding:     "to be bound to its node",
	Preparing:   "for its claims to be prepared",
	Starting:    "for its containers to start",
}

// Answer is why a Pod does not run yet.
type Answer struct {
	Subject

	State State `json:"state"`
	// Since is when the state began, if that is known.
	Since *time.Time `json:"since,omitempty"`
	// Reason is the answer in one line, and Details are more lines.
	Reason  string   `json:"reason"`
	Details []string `json:"details,omitempty"`
	Evidence

	// Fits says that a node has what the Pod asks for.
	Fits bool `json:"-"`

	pod *corev1.Pod
}

// Subject is the Pod or the claim that an Answer is about.
type Subject struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod,omitempty"`
	Claim     string `json:"claim,omitempty"`
	// Owner is the controller of the Pod: its kind and its name.
	Owner string `json:"owner,omitempty"`
	Node  string `json:"node,omitempty"`
}

// Evidence is what an Answer about a Pod without a node is concluded from.
type Evidence struct {
	// Requests are those that get no devices.
	Requests []simulator.Supply `json:"requests,omitempty"`
	// Nodes are those that refuse the Pod, by their reasons.
	Nodes []Refusal `json:"nodes,omitempty"`
	// Scheduler is what the scheduler says itself, in the condition PodScheduled.
	Scheduler string `json:"scheduler,omitempty"`
}

// Refusal is why some nodes refuse a Pod.
type Refusal struct {
	Nodes  []string `json:"nodes"`
	Reason string   `json:"reason"`
}

// ResourceName is kubectl's name of the Pod or the claim.
func (s *Subject) ResourceName() string {
	if s.Claim != "" {
		return "resourceclaim/" + s.Claim
	}
	return "pod/" + s.Pod
}

// Waits reports whether the Pod waits for something.
func (a *Answer) Waits() bool { return waits[a.State] != "" }

// setState sets the state of the Pod, since when, and the reason in one line.
func (a *Answer) setState(state State, since metav1.Time, reason string) *Answer {
	a.State, a.Reason = state, reason
	if !since.IsZero() {
		a.Since = new(since.UTC())
	}
	return a
}
