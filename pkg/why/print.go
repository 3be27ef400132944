package why

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Print prints an answer: a line, and what there is to say beyond it. The title is that
// of the Pods, where there are several.
func (a *Answer) Print(out io.Writer, title string, now time.Time) error {
	text := fmt.Sprintf("Pod %s/%s", a.Namespace, a.Pod)
	verb := "waits"
	if title != "" {
		text, verb = title, "wait"
	}
	if a.Waits() {
		text += " " + verb + " " + waits[a.State] + a.since(now)
	}
	text += ": " + a.Reason + "\n"
	for _, detail := range a.Details {
		text += "  " + detail + "\n"
	}
	if a.Waits() && a.Scheduler != "" && a.Scheduler != a.Reason {
		text += "  the scheduler says: " + a.Scheduler + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

// since says when the state began.
func (a *Answer) since(now time.Time) string {
	if a.Since == nil {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", written(*a.Since), duration.HumanDuration(now.Sub(*a.Since)))
}

// Print prints a group as one answer.
func (g *Group) Print(out io.Writer, now time.Time) error {
	if len(g.Pods) == 1 {
		return g.Answer.Print(out, "", now)
	}
	title := g.Title() + " in namespace " + g.Namespace
	switch {
	case g.Owner != "":
		title += " (such as " + g.Pod + ")"
	case len(g.Pods) <= shown:
		title = "Pods " + title
	}
	return g.Answer.Print(out, title, now)
}
