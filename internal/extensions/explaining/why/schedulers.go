package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/facts"
)

// reasonWithCount matches one reason in the scheduler's message, after the number of its nodes.
var reasonWithCount = regexp.MustCompile(`^(\d+ )(.+)$`)

// judged begin the reasons of the scheduler that a simulator.Scheduler judges itself, by what is there now.
var judged = []string{
	"Insufficient ", "Too many pods", "cannot allocate all claims", "node(s) had untolerated taint", "node(s) had taint", "node(s) were unschedulable",
	"node(s) didn't match Pod's node affinity/selector", "node(s) didn't have free ports", "node(s) didn't match pod affinity rules",
	"node(s) didn't match pod anti-affinity rules", "node(s) didn't satisfy existing pods anti-affinity rules", "node(s) didn't match pod topology spread constraints", "resourceclaim", "deviceclass", "claim not", "waiting for",
}

// otherReasons returns the reasons in the scheduler's message about a Pod that no simulator.Scheduler
// judges, such as volumes, each with its number of nodes.
func otherReasons(message string) []string {
	_, reasons, found := strings.Cut(message, " nodes are available: ")
	if !found {
		return nil
	}
	for _, end := range []string{" preemption: ", " still not schedulable", " no new claims to deallocate"} {
		reasons, _, _ = strings.Cut(reasons, end)
	}
	var others []string
	for reason := range strings.SplitSeq(strings.TrimRight(reasons, ". "), ", ") {
		text := reason
		if counted := reasonWithCount.FindStringSubmatch(reason); counted != nil {
			text = counted[2]
		}
		if !slices.ContainsFunc(judged, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			others = append(others, reason)
		}
	}
	return others
}

// describeScheduler says that no scheduler has looked at a Pod that names one of its own.
func describeScheduler(pod *corev1.Pod) string {
	name := pod.Spec.SchedulerName
	hasTried := facts.PodCondition(pod, corev1.PodScheduled).Status != "" || len(pod.Spec.SchedulingGates) > 0
	if name == "" || name == corev1.DefaultSchedulerName || hasTried {
		return ""
	}
	return fmt.Sprintf("no scheduler has looked at it: is there one named %q (spec.schedulerName)?", name)
}
