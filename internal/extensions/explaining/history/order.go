package history

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The order in which steps of one second happen.
const (
	rankOwnerCreated = iota
	rankCreated
	rankPodCreated
	rankUnscheduled
	rankAllocated
	rankReserved
	rankBound
	rankWaiting
	rankDevice
	rankPrepared
	rankStarting
	rankInitialized
	rankRunning
	rankContainersReady
	rankReady
	rankAfter
	rankDeleted
)

// conditionRanks are those of conditions that are True.
var conditionRanks = map[corev1.PodConditionType]int{
	corev1.PodScheduled:              rankBound,
	corev1.PodReadyToStartContainers: rankStarting,
	corev1.PodInitialized:            rankInitialized,
	corev1.ContainersReady:           rankContainersReady,
	corev1.PodReady:                  rankReady,
}

// eventRanks are those of events by their reasons.
var eventRanks = map[string]int{"FailedScheduling": rankUnscheduled, "Scheduled": rankBound}

// completed is the reason of conditions of a Pod that has ended.
const completed = "PodCompleted"

func rankOfCondition(c *corev1.PodCondition) int {
	rank, standard := conditionRanks[c.Type]
	switch {
	case !standard || c.Reason == completed:
		return rankAfter
	case c.Status == corev1.ConditionTrue:
		return rank
	case c.Type == corev1.PodScheduled:
		return rankUnscheduled
	}
	return rankWaiting
}

// orderSteps puts steps in the order in which they happened. It compares times by their seconds. Within a
// second the rank decides, and between steps with a fraction of the second the fraction. A step without a
// time follows the step of the claim that precedes it by rank.
func orderSteps(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.rank, b.rank) })
	at := make([]int64, len(steps))
	var last int64
	for i := range steps {
		switch {
		case steps[i].Time == nil:
			at[i] = last
		case steps[i].Object == "":
			last = steps[i].Time.Unix()
			fallthrough
		default:
			at[i] = steps[i].Time.Unix()
		}
	}
	indices := make([]int, len(steps))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	unsorted := slices.Clone(steps)
	for to, from := range indices {
		steps[to] = unsorted[from]
	}
	slices.Sort(at)
	for begin := 0; begin < len(steps); {
		end := begin
		for end < len(steps) && at[end] == at[begin] {
			end++
		}
		orderFractions(steps[begin:end])
		begin = end
	}
}

// orderFractions brings those steps of one second whose fraction of it is known in order, in the places
// that they have together.
func orderFractions(steps []Step) {
	var places []int
	var exact []Step
	for i := range steps {
		if steps[i].Time != nil && steps[i].Time.Nanosecond() != 0 {
			places, exact = append(places, i), append(exact, steps[i])
		}
	}
	slices.SortStableFunc(exact, func(a, b Step) int { return a.Time.Compare(*b.Time) })
	for i, place := range places {
		steps[place] = exact[i]
	}
}
