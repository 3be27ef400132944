package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fence   = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)|(?:src|srcset|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	named   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// dropped is what GitHub leaves out of an anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// links are the targets of a page, without those in code.
func links(page string) []string {
	var targets []string
	page = code.ReplaceAllString(fence.ReplaceAllString(page, ""), "code")
	for _, found := range link.FindAllStringSubmatch(page, -1) {
		targets = append(targets, found[1]+found[2])
	}
	return targets
}

// anchors are those of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(strings.TrimSpace(named.ReplaceAllString(found[1], "$1")))
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-")
		for i, unique := 0, anchor; ; i++ {
			if i > 0 {
				unique = fmt.Sprintf("%s-%d", anchor, i)
			}
			if !all[unique] {
				all[unique] = true
				break
			}
		}
	}
	return all
}

// target is the file that a link of a page names, and the anchor in it. Outside
// links have none.
func target(page, link string) (file, anchor string, local bool) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return "", "", false
	}
	file, anchor, _ = strings.Cut(link, "#")
	if file == "" {
		return page, anchor, true
	}
	return path.Join(path.Dir(page), file), anchor, true
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range files(t, ".md") {
		for _, link := range links(read(t, page)) {
			file, anchor, local := target(page, link)
			if !local {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: link to %s: there is no %s", page, link, file)
				continue
			}
			if anchor != "" && strings.HasSuffix(file, ".md") && !anchors(read(t, file))[anchor] {
				t.Errorf("%s: link to %s: %s has no heading for #%s", page, link, file, anchor)
			}
		}
	}
}

// TestPagesCanBeReached: whoever begins at the index finds every page, and the
// index is one link away from README.md.
func TestPagesCanBeReached(t *testing.T) {
	t.Parallel()
	const index = "docs/README.md"
	reached := map[string]bool{index: true}
	for queue := []string{index}; len(queue) > 0; queue = queue[1:] {
		for _, link := range links(read(t, queue[0])) {
			file, _, local := target(queue[0], link)
			if local && strings.HasPrefix(file, "docs/") && strings.HasSuffix(file, ".md") && !reached[file] {
				reached[file] = true
				queue = append(queue, file)
			}
		}
	}
	for _, page := range files(t, ".md") {
		if strings.HasPrefix(page, "docs/") {
			require.True(t, reached[page], "no link leads from %s to %s", index, page)
		}
	}
	require.Contains(t, links(read(t, "README.md")), index)
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	page := "# A `b-c`, d\n## [Same](x.md)\n```\n# none\n```\n## Same\n"
	require.Equal(t, map[string]bool{"a-b-c-d": true, "same": true, "same-1": true}, anchors(page))
	require.Equal(t, []string{"a.md#b", "c.svg"}, links("[a](a.md#b) `[x](y)` <img src=\"c.svg\">\n```\n[x](y)\n```\n"))
}
