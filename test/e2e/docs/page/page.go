// Package page reads what a Markdown page has its reader do: the commands, the
// files that they use, and what they print. Markers, HTML comments that a reader
// does not see, say how a block is run:
//
//	<!-- cluster: demo -->   the page is run, with the cluster of the demo;
//	                         "kwok" is a cluster without kwok-dra, whose sections
//	                         package install follows; "none" is no cluster
//	<!-- file: gpus.yaml --> the yaml block that follows is this file
//	<!-- skip: REASON -->    the sh or yaml block that follows is not run or checked
//	<!-- retry -->           the sh block that follows is run until it succeeds and
//	                         prints what it should
//	<!-- fails -->           the last command of the sh block that follows fails
//	<!-- background -->      the sh block that follows runs until the end of the page
//	<!-- output -->          the text or console block that follows is what the sh
//	                         block before it prints, see package match
//	<!-- note: TEXT -->      a comment for who writes the page
package page

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// The clusters that a page may start from.
const (
	Demo = "demo"
	Kwok = "kwok"
	None = "none"
)

// Page is what a page has its reader do.
type Page struct {
	// Cluster is what the page starts from, or "" where nothing on it is run.
	Cluster string
	// Steps are its blocks, in order.
	Steps []Step
}

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	// Commands are run by a shell.
	Commands Kind = "sh"
	// File is written to the working directory.
	File Kind = "file"
	// Document is a valid YAML document of Kubernetes, of kwok or of kwok-dra.
	Document Kind = "yaml"
)

// Step is one block of a page.
type Step struct {
	Kind Kind
	// Line is where it begins in the page.
	Line int
	// Section is the heading above it.
	Section string
	Text    string
	// File is the name of a file.
	File string
	// Skip is why it is not run, if it is not.
	Skip string
	// Retry, Background and Fails say how commands are run, and how they end.
	Retry, Background, Fails bool
	// Output is what commands print, nil where the page does not say.
	Output *string
}

// Parse reads a page. The errors name the path and the line.
func Parse(path string, source []byte) (*Page, error) {
	p := &parser{path: path, source: source, page: &Page{}, given: map[string]marker{}}
	root := goldmark.DefaultParser().Parse(text.NewReader(source))
	if err := ast.Walk(root, p.visitNode); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	p.dropMarkers()
	p.checkCluster()
	return p.page, errors.Join(p.problems...)
}

type parser struct {
	path     string
	source   []byte
	page     *Page
	section  string
	problems []error
	// given are the markers of the next block, by name.
	given map[string]marker
}

func (p *parser) addProblem(line int, format string, arguments ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %w", p.path, line, fmt.Errorf(format, arguments...)))
}

// visitNode is called for each node on the way in and on the way out.
func (p *parser) visitNode(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch node := node.(type) {
	case *ast.HTMLBlock:
		p.readMarkers(node)
	case *ast.FencedCodeBlock:
		p.addStep(node)
	case *ast.RawHTML:
		p.refuseInlineMarkers(node)
	case *ast.Heading:
		p.section = string(node.Lines().Value(p.source))
		p.dropMarkers()
	case *ast.Paragraph, *ast.TextBlock, *ast.CodeBlock, *ast.ThematicBreak:
		p.dropMarkers()
	}
	return ast.WalkContinue, nil
}

// lineAt is the number of the line of a place in the source.
func (p *parser) lineAt(offset int) int {
	return 1 + bytes.Count(p.source[:offset], []byte("\n"))
}

// addStep adds a step for a block, or what it has to say to the last one.
func (p *parser) addStep(node *ast.FencedCodeBlock) {
	language := string(node.Language(p.source))
	step := Step{Line: p.lineOf(node), Section: p.section, Text: string(node.Lines().Value(p.source))}
	markers := p.given
	p.given = map[string]marker{}
	for _, m := range markers {
		if !m.belongsTo(language) {
			p.addProblem(m.line, "marker %q is not for a block of %s: it is for %s", m.name, cmp.Or(language, "no language"), strings.Join(known[m.name].languages, " or "))
			return
		}
	}
	_, step.Retry = markers["retry"]
	_, step.Background = markers["background"]
	_, step.Fails = markers["fails"]
	step.Skip, step.File = markers["skip"].value, markers["file"].value
	switch language {
	case "sh":
		step.Kind = Commands
	case "yaml":
		step.Kind = Document
		if step.File != "" {
			step.Kind = File
		}
	case "bash", "shell", "zsh":
		p.addProblem(step.Line, "a block of %s is not run: make it sh", language)
		return
	default:
		if m, ok := markers["output"]; ok {
			p.setOutput(m, step.Text)
		}
		return
	}
	if step.Retry && step.Background {
		p.addProblem(step.Line, "a block that runs in the background is not run again: remove retry")
	}
	if step.Fails && step.Background {
		p.addProblem(step.Line, "how a block ends that runs in the background is not known: remove fails")
	}
	p.page.Steps = append(p.page.Steps, step)
}

// lineOf is the line of the fence that begins a block.
func (p *parser) lineOf(node *ast.FencedCodeBlock) int {
	if node.Info != nil {
		return p.lineAt(node.Info.Segment.Start)
	}
	if node.Lines().Len() > 0 {
		return p.lineAt(node.Lines().At(0).Start) - 1
	}
	return 1
}

// setOutput gives the last step what it prints.
func (p *parser) setOutput(m marker, want string) {
	if len(p.page.Steps) == 0 || p.page.Steps[len(p.page.Steps)-1].Kind != Commands {
		p.addProblem(m.line, "no sh block before this output prints it")
		return
	}
	last := &p.page.Steps[len(p.page.Steps)-1]
	if last.Output != nil {
		p.addProblem(m.line, "the sh block of line %d has an output already", last.Line)
	}
	if last.Background {
		p.addProblem(m.line, "the sh block of line %d runs in the background: its output is not compared", last.Line)
	}
	last.Output = &want
}

// checkCluster wants a page with commands to say where they are run.
func (p *parser) checkCluster() {
	for _, step := range p.page.Steps {
		if step.Kind == Commands && p.page.Cluster == "" {
			p.addProblem(step.Line, "the page has commands and does not say where they are run: add <!-- cluster: %s -->, %s or %s near its top", Demo, Kwok, None)
			return
		}
	}
}
