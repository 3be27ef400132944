package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/listing"
)

// mostShown bounds the findings of one kind that people are shown.
const mostShown = 5

// mostNamed bounds the names in a line of evidence.
const mostNamed = 3

func firstFew(names []string) string { return cli.FirstFew(names, mostNamed) }

// countFindings is the answer in one line.
func countFindings(w *World, findings []Finding) string {
	counts := map[Level]int{}
	for i := range findings {
		counts[findings[i].Level]++
	}
	text := "No problems"
	if counts[Problem] > 0 {
		text = listing.Count(counts[Problem], "problem")
	}
	if counts[Hint] > 0 {
		text += " and " + listing.Count(counts[Hint], "hint")
	}
	var looked []string
	if !w.IsWithoutSlices {
		looked = append(looked, fmt.Sprintf("%s with %s", listing.Count(len(w.pools), "pool"), listing.Count(len(w.listDevices()), "device")))
	}
	if !w.IsWithoutClaims {
		claims := listing.Count(len(w.Claims), "claim")
		if w.Namespace != "" {
			claims += " in namespace " + w.Namespace
		}
		looked = append(looked, claims)
	}
	return text + " found in " + strings.Join(looked, ", ")
}

// writeFindings prints findings for people, those of one kind together.
func writeFindings(out io.Writer, summary string, findings []Finding, skipped []string) error {
	var text strings.Builder
	text.WriteString(summary + "\n")
	for begin := 0; begin < len(findings); {
		end := begin
		for end < len(findings) && findings[end].Check == findings[begin].Check && findings[end].Level == findings[begin].Level {
			end++
		}
		first := &findings[begin]
		of := slices.IndexFunc(checks, func(c check) bool { return c.name == first.Check })
		fmt.Fprintf(&text, "\n%s %s (%d): %s\n", strings.ToUpper(string(first.Level)), first.Check, end-begin, checks[of].title)
		for i := begin; i < min(end, begin+mostShown); i++ {
			fmt.Fprintf(&text, "  %s: %s\n    %s\n", findings[i].Object, findings[i].Evidence, findings[i].Fix)
		}
		if more := end - begin - mostShown; more > 0 {
			fmt.Fprintf(&text, "  and %d more: -o yaml has all\n", more)
		}
		begin = end
	}
	if len(skipped) > 0 {
		slices.Sort(skipped)
		fmt.Fprintf(&text, "\nnot checked: %s\n", strings.Join(skipped, ", "))
	}
	return output.Text(out, text.String())
}
