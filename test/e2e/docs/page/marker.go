package page

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// marker is an HTML comment that says how a block is run.
type marker struct {
	name, value string
	line        int
}

// rule is what a marker is like.
type rule struct {
	// languages are those of the blocks that it may precede, none if it is of the
	// page.
	languages []string
	// value says what follows the colon, "" if there is none.
	value string
}

var known = map[string]rule{
	"background": {languages: []string{"sh"}},
	"fails":      {languages: []string{"sh"}},
	"cluster":    {value: "what the page starts from"},
	"file":       {languages: []string{"yaml"}, value: "the name of a file"},
	"note":       {value: "what there is to say"},
	"output":     {languages: []string{"text", "console"}},
	"retry":      {languages: []string{"sh"}},
	"skip":       {languages: []string{"sh", "yaml"}, value: "the reason"},
}

func (m marker) belongsTo(language string) bool {
	return slices.Contains(known[m.name].languages, language)
}

var comment = regexp.MustCompile(`(?s)<!--(.*?)-->`)

// readMarkers reads the markers of a block of HTML.
func (p *parser) readMarkers(node *ast.HTMLBlock) {
	lines := node.Lines()
	if lines.Len() == 0 {
		return
	}
	start, end := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	if node.HasClosure() {
		end = node.ClosureLine.Stop
	}
	source := p.source[start:end]
	if len(strings.TrimSpace(comment.ReplaceAllString(string(source), ""))) > 0 {
		p.dropMarkers()
	}
	for _, found := range comment.FindAllSubmatchIndex(source, -1) {
		p.readMarker(string(source[found[2]:found[3]]), p.lineAt(start+found[0]))
	}
}

// refuseInlineMarkers refuses markers that are in the middle of a line.
func (p *parser) refuseInlineMarkers(node *ast.RawHTML) {
	source := string(node.Segments.Value(p.source))
	if comment.MatchString(source) {
		p.addProblem(p.lineAt(node.Segments.At(0).Start), "%s is in a line of text: give it a line of its own", source)
	}
}

// readMarker reads one marker.
func (p *parser) readMarker(content string, line int) {
	name, value, _ := strings.Cut(strings.TrimSpace(content), ":")
	m := marker{name: strings.TrimSpace(name), value: strings.TrimSpace(value), line: line}
	rule, ok := known[m.name]
	switch {
	case !ok:
		p.addProblem(line, "unknown marker %q: want one of %s", m.name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	case rule.value != "" && m.value == "":
		p.addProblem(line, "marker %q has no value: add %s, as in <!-- %s: ... -->", m.name, rule.value, m.name)
	case rule.value == "" && m.value != "":
		p.addProblem(line, "marker %q takes no value", m.name)
	case m.name == "cluster":
		p.setCluster(m)
	case m.name == "file" && !filepath.IsLocal(m.value):
		p.addProblem(line, "file %q is not below the working directory", m.value)
	case m.name != "note":
		p.given[m.name] = m
	}
}

func (p *parser) setCluster(m marker) {
	if p.page.Cluster != "" {
		p.addProblem(m.line, "the page has a cluster already, %s", p.page.Cluster)
		return
	}
	if !slices.Contains([]string{Demo, Kwok, None}, m.value) {
		p.addProblem(m.line, "unknown cluster %q: want %s, %s or %s", m.value, Demo, Kwok, None)
		return
	}
	if len(p.page.Steps) > 0 {
		p.addProblem(m.line, "the cluster is named after the first block: name it near the top of the page")
	}
	p.page.Cluster = m.value
}

// dropMarkers complains about markers that no block follows.
func (p *parser) dropMarkers() {
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		p.addProblem(p.given[name].line, "marker %q has no block after it", name)
	}
	clear(p.given)
}
