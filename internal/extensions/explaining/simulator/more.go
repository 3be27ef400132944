package simulator

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Boundless is a number of Pods that is large enough to say that only CPU and memory limit them.
const Boundless = 20000

// More returns how many more Pods like one fit, and why not one more.
func (s *Scheduler) More(ctx context.Context, pod *corev1.Pod) (int, []string) {
	trial := s.Clone()
	for count := range Boundless {
		another := pod.DeepCopy()
		another.Name, another.UID, another.Status = pod.Name+"-more-"+strconv.Itoa(count), "", corev1.PodStatus{}
		placement := trial.Schedule(ctx, another)
		if placement.Node == "" {
			then := placement.Reasons(ctx, trial)
			for i := range then {
				then[i] = strings.ReplaceAll(then[i], another.Name, pod.Name)
			}
			return count, then
		}
	}
	return Boundless, []string{"no device limits them"}
}
