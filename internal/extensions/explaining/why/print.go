package why

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
)

// Print prints an answer: the reason, and then each detail on its own line.
func (a *Answer) Print(out io.Writer, now time.Time) error {
	text := fmt.Sprintf("Pod %s/%s", a.Namespace, a.Pod)
	if a.Claim != "" {
		text = fmt.Sprintf("Claim %s/%s", a.Namespace, a.Claim)
	}
	switch {
	case a.Waits():
		text += " waits " + waits[a.State] + a.describeSince(now)
	case a.State == Terminating:
		text += " is being deleted"
	}
	text = lineOf("", text+": "+a.Reason)
	for _, detail := range a.Details {
		text += lineOf("  ", detail)
	}
	if said, _, _ := strings.Cut(a.Scheduler, " still not schedulable"); a.Waits() && said != "" && a.Scheduler != a.Reason {
		said, _, _ = strings.Cut(said, " preemption:")
		text += lineOf("  ", "the scheduler says: "+said)
	}
	_, err := io.WriteString(out, text)
	return err
}

// lineOf puts a text on one line, since texts of others may have several.
func lineOf(before, text string) string {
	return before + strings.Join(strings.Fields(text), " ") + "\n"
}

// describeSince says how long the state has lasted.
func (a *Answer) describeSince(now time.Time) string {
	if a.Since == nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", duration.HumanDuration(now.Sub(*a.Since)))
}

// causesShown is how many causes are printed, and podsShown of how many owners of each.
const causesShown, podsShown = 10, 4

// PrintGroups prints which Pods wait and why: each cause once, those of most Pods first. A single
// Pod is printed with its details. The command is the one that prints the details of a Pod.
func PrintGroups(out io.Writer, groups []*Group, now time.Time, command string) error {
	if len(groups) == 1 && len(groups[0].Pods) == 1 {
		return groups[0].Print(out, now)
	}
	byCause := map[string][]*Group{}
	total := 0
	for _, g := range groups {
		cause := string(g.State) + "\n" + g.withoutNames()
		byCause[cause] = append(byCause[cause], g)
		total += len(g.Pods)
	}
	causes := make([]*cause, 0, len(byCause))
	for _, same := range byCause {
		c := &cause{groups: slices.SortedStableFunc(slices.Values(same), func(a, b *Group) int { return cmp.Compare(len(b.Pods), len(a.Pods)) })}
		for _, g := range c.groups {
			c.pods += len(g.Pods)
			if g.Since != nil && (c.longest == nil || g.Since.Before(*c.longest.Since)) {
				c.longest = &g.Answer
			}
		}
		causes = append(causes, c)
	}
	slices.SortFunc(causes, func(a, b *cause) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.groups[0].Namespace, b.groups[0].Namespace), natural.Compare(a.groups[0].Pod, b.groups[0].Pod))
	})
	text := ""
	if len(causes) > 1 {
		text = fmt.Sprintf("%d Pods wait, for %d causes:\n\n", total, len(causes))
	}
	for i, c := range causes {
		if i == causesShown {
			text += fmt.Sprintf("and %s more: -o json has all\n\n", formatCount(len(causes)-i, "cause"))
			break
		}
		text += c.describeCause(now) + "\n"
	}
	first := causes[0].groups[0]
	text += fmt.Sprintf("Details of one: %s -n %s %s\n", command, first.Namespace, first.Pod)
	_, err := io.WriteString(out, text)
	return err
}

// cause is a set of groups that wait for the same.
type cause struct {
	groups []*Group
	pods   int
	// longest is the answer for the Pod that has waited longest, as far as that is known.
	longest *Answer
}

// describeCause says how many Pods wait and why, and then which.
func (c *cause) describeCause(now time.Time) string {
	first := c.groups[0]
	verb := " wait "
	if c.pods == 1 {
		verb = " waits "
	}
	text := formatCount(c.pods, "Pod") + verb + waits[first.State]
	if c.longest != nil {
		text += c.longest.describeSince(now)
	}
	text = lineOf("", text+": "+first.Reason)
	for i, g := range c.groups {
		if i == podsShown {
			text += fmt.Sprintf("  - and Pods of %d more\n", len(c.groups)-i)
			break
		}
		line := g.Namespace + "/" + g.Pod
		switch {
		case g.Owner != "" && len(g.Pods) > 1:
			line = fmt.Sprintf("%s, such as %s", g.Title(), line)
		case len(g.Pods) > 1:
			line += fmt.Sprintf(" and %d more", len(g.Pods)-1)
		}
		text += "  - " + line + "\n"
	}
	return text
}

func formatCount(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
