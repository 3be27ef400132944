package fit

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/explaining/simulator"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/printing"
)

// Verdict says whether a Pod fits.
type Verdict struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Fits      bool   `json:"fits"`
	// Node is where it fits, and Devices are those that it gets there.
	Node    string   `json:"node,omitempty"`
	Devices []Device `json:"devices,omitempty"`
	// Reason says why it does not fit, and Details are more lines.
	Reason  string   `json:"reason,omitempty"`
	Details []string `json:"details,omitempty"`
	// Evict says on which node it would fit without some Pods of lower priority.
	Evict *Evict `json:"evict,omitempty"`
	// NotConsidered are rules of the Pod that may keep it away all the same.
	NotConsidered []string `json:"notConsidered,omitempty"`
}

// Device is a device that a request gets.
type Device struct {
	Claim   string `json:"claim"`
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
}

// Evict is a node and the Pods that would have to go there, the most important first.
type Evict struct {
	Node string   `json:"node"`
	Pods []Victim `json:"pods"`
}

// Victim is a Pod of lower priority.
type Victim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
}

// ResourceName is kubectl's name of the Pod.
func (v *Verdict) ResourceName() string { return "pod/" + v.Pod }

// newVerdict places a Pod, or says why it does not fit.
func newVerdict(ctx context.Context, scheduler *simulator.Scheduler, pod *corev1.Pod) *Verdict {
	placed := scheduler.Schedule(ctx, pod)
	v := &Verdict{Namespace: pod.Namespace, Pod: pod.Name, Fits: placed.Node != "", Node: placed.Node, NotConsidered: unconsidered(pod)}
	if !v.Fits {
		reasons := placed.Reasons(ctx, scheduler)
		v.Reason, v.Details = reasons[0], reasons[1:]
		if eviction := scheduler.FindEviction(ctx, pod); eviction != nil {
			v.Evict = &Evict{Node: eviction.Node}
			for _, pod := range eviction.Pods {
				victim := Victim{Namespace: pod.Namespace, Name: pod.Name}
				if pod.Spec.Priority != nil {
					victim.Priority = *pod.Spec.Priority
				}
				v.Evict.Pods = append(v.Evict.Pods, victim)
			}
		}
		return v
	}
	for _, claim := range placed.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			v.Devices = append(v.Devices, Device{placed.WithoutNames(claim.Name), result.Request, result.Driver, result.Pool, result.Device})
		}
	}
	return v
}

// unconsidered names the rules of a Pod that are not considered.
func unconsidered(pod *corev1.Pod) []string {
	var rules []string
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].PersistentVolumeClaim != nil || pod.Spec.Volumes[i].Ephemeral != nil {
			rules = append(rules, "volumes")
			break
		}
	}
	if name := pod.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		rules = append(rules, fmt.Sprintf("what its scheduler %q does otherwise", name))
	}
	return rules
}

// printVerdicts prints verdicts: one in sentences, and several in a table, with what is wrong with those that do not fit.
func printVerdicts(f *printing.Frame, verdicts []*Verdict) error {
	if !f.IsForPeople() {
		return printing.PrintObjects(f, verdicts)
	}
	if len(verdicts) == 1 {
		return output.Text(f.Out, verdicts[0].describeFit())
	}
	fitting := 0
	table := &output.Rows{Columns: []output.Column{{Name: "namespace"}, {Name: "pod"}, {Name: "node"}, {Name: "devices"}}}
	for _, v := range verdicts {
		if v.Fits {
			fitting++
			names := make([]string, len(v.Devices))
			for i, d := range v.Devices {
				names[i] = d.Request + "=" + d.Driver + "/" + d.Pool + "/" + d.Device
			}
			table.Add(v.Namespace, v.Pod, output.OrNone(v.Node), output.OrNone(names...))
		}
	}
	text := fmt.Sprintf("All %d Pods fit.\n\n", len(verdicts))
	if fitting < len(verdicts) {
		text = fmt.Sprintf("%d of %d Pods fit.\n\n", fitting, len(verdicts)) + describeUnfit(verdicts) + "\n"
	}
	if err := output.Text(f.Out, text); err != nil {
		return err
	}
	if fitting == 0 {
		return nil
	}
	return f.Print(f.Out, output.Tables{table}, nil)
}

// describeUnfit says once what is wrong with Pods that do not fit for the same reason.
func describeUnfit(verdicts []*Verdict) string {
	text, told, more := "", map[string]bool{}, 0
	for _, v := range verdicts {
		if v.Fits {
			continue
		}
		if told[v.Reason] {
			more++
			continue
		}
		told[v.Reason] = true
		text += v.describeFit()
	}
	if more > 0 {
		text += fmt.Sprintf("and %d more, for the same reasons\n", more)
	}
	return text
}

// describeFit says it in sentences.
func (v *Verdict) describeFit() string {
	var text strings.Builder
	if v.Fits {
		fmt.Fprintf(&text, "Pod %s/%s fits on node %s\n", v.Namespace, v.Pod, v.Node)
		for _, d := range v.Devices {
			fmt.Fprintf(&text, "  claim %s, request %s: %s/%s/%s\n", d.Claim, d.Request, d.Driver, d.Pool, d.Device)
		}
	} else {
		fmt.Fprintf(&text, "Pod %s/%s does not fit: %s\n", v.Namespace, v.Pod, v.Reason)
		for _, line := range v.Details {
			text.WriteString("  " + line + "\n")
		}
	}
	if v.Evict != nil {
		var names []string
		for _, victim := range v.Evict.Pods {
			names = append(names, fmt.Sprintf("%s/%s (priority %d)", victim.Namespace, victim.Name, victim.Priority))
		}
		fmt.Fprintf(&text, "  it would fit on node %s without Pods of lower priority: %s\n", v.Evict.Node, cli.FirstFew(names, maxVictims))
	}
	if len(v.NotConsidered) > 0 {
		fmt.Fprintf(&text, "  not considered: %s\n", strings.Join(v.NotConsidered, "; "))
	}
	return text.String()
}

// maxVictims bounds the Pods that a line names.
const maxVictims = 8
