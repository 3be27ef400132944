package trial

import "slices"

// leaveOutParts looks for a smallest set of parts that still fails, by delta debugging: it leaves out halves, then
// quarters, down to single parts, until no single part can be left out. fails says whether the rest fails
// without some parts; to end the search early, it says no. The result are the parts to leave out.
func leaveOutParts(parts int, fails func(without []int) bool) []int {
	var without []int
	kept := make([]int, parts)
	for i := range kept {
		kept[i] = i
	}
	for size := max(1, parts/2); ; size = max(1, size/2) {
		isSmaller := false
		// From the end: what comes late in a story depends on what comes early.
		for end := len(kept); end > 0; end -= size {
			start := max(0, end-size)
			candidate := slices.Concat(without, kept[start:end])
			slices.Sort(candidate)
			if fails(candidate) {
				without, kept, isSmaller = candidate, slices.Delete(kept, start, end), true
			}
		}
		if size == 1 && !isSmaller {
			return without
		}
	}
}
