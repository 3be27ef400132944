package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/dractl/ambiguous"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/util/strict"
)

// Finding is something to say about a document.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Object is the kind and the name, and Field the path of the field, if they are
	// known.
	Object  string `json:"object,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String is the finding in the form of compilers, so that editors and CI find the
// place.
func (f Finding) String() string {
	parts := []string{fmt.Sprintf("%s:%d", f.File, f.Line)}
	for _, part := range []string{f.Object, f.Field, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Result is the result of a check.
type Result struct {
	// Problems are the mistakes, in the order of the documents.
	Problems []Finding `json:"problems"`
	// Notes are what kwok-dra normalizes, and what is valid but probably a mistake.
	Notes []Finding `json:"notes,omitempty"`
	// Skipped counts the objects of each kind that kwok-dra does not read.
	Skipped map[string]int `json:"skipped,omitempty"`
	// Checked are the objects that were checked, as kind/name.
	Checked []Checked `json:"checked"`
	// Set is the configuration of all documents. It is nil if there are problems.
	Set *config.Set `json:"-"`
}

// Checked is an object that was checked.
type Checked struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Documents checks documents, each by itself and all together.
func Documents(all []documents.Document) *Result {
	c := &checker{result: &Result{Problems: []Finding{}, Checked: []Checked{}, Skipped: map[string]int{}}, places: map[string]*place{}, names: map[string]string{}}
	for i := range all {
		c.checkDocument(&place{file: all[i].File, line: all[i].Line, data: all[i].Data})
	}
	set, err := config.NewSet(c.decoded...)
	c.reportRefusals(err)
	order := map[string]int{}
	for i := range all {
		if _, known := order[all[i].File]; !known {
			order[all[i].File] = i
		}
	}
	slices.SortStableFunc(c.result.Problems, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	if len(c.result.Problems) == 0 {
		c.result.Set = set
	}
	return c.result
}

// checker checks documents one after the other.
type checker struct {
	result *Result
	// decoded are the documents of kwok-dra's own kinds, and what adapters make of others.
	decoded []*config.Documents
	// places finds a document by its source in errors.
	places map[string]*place
	// names maps the objects whose names this package compares to their places.
	names map[string]string
}

// checkDocument checks a document, or the objects in it.
func (c *checker) checkDocument(p *place) {
	root, problem := strict.Node(p.data)
	if len(root.Content) == 0 {
		c.checkOwnKind(p) // it says best what is wrong
		return
	}
	if p.node == nil {
		p.node = root.Content[0]
	}
	if problem != nil {
		c.reportProblems(p, "", *problem)
		return
	}
	c.checkObjects(p)
}

// checkObjects checks an object, or the items of a list.
func (c *checker) checkObjects(p *place) {
	kind, items := textAt(p.node, "kind"), valueAt(p.node, "items")
	of, isList := strings.CutSuffix(kind, "List")
	if !isList || items == nil || items.Kind != yaml.SequenceNode {
		c.checkObject(p)
		return
	}
	for _, item := range items.Content {
		if item.Kind == yaml.MappingNode && of != "" && textAt(item, "kind")+textAt(item, "apiVersion") == "" {
			for _, text := range []string{"kind", of, "apiVersion", textAt(p.node, "apiVersion")} {
				item.Content = append(item.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: item.Line})
			}
		}
		data, err := yaml.Marshal(item)
		if err != nil {
			c.reportProblems(p, "", strict.Problem{Path: "items", Text: fmt.Sprintf("cannot be read: %v", err)})
			continue
		}
		c.checkObjects(&place{file: p.file, line: p.line, data: data, node: item})
	}
}

// checkOwnKind checks a document of kwok-dra's own kinds.
func (c *checker) checkOwnKind(p *place) {
	c.places[p.sourceName()] = p
	decoded, err := config.Decode(p.sourceName(), p.data)
	if c.reportRefusals(err) {
		return
	}
	c.decoded = append(c.decoded, decoded)
	c.noteQuoted(p)
	set, _ := config.NewSet(decoded)
	for _, t := range set.Templates {
		for _, warning := range ambiguous.InTemplate(t) {
			c.result.Notes = append(c.result.Notes, p.newFinding(p.objectName(), warning.Path, warning.Text))
		}
	}
}

// inDocument is what config adds to the source of a document.
const inDocument = ", document "

// reportRefusals adds the problems of an error of config, and reports whether there are
// any.
func (c *checker) reportRefusals(err error) bool {
	refusals, rest := config.Refusals(err)
	for _, refusal := range refusals {
		for _, problem := range refusal.Problems {
			source, _, _ := strings.Cut(refusal.Source, inDocument)
			problem.Text = strings.ReplaceAll(problem.Text, inDocument+"1:", ":")
			if p := c.places[source]; p != nil {
				c.reportProblems(p, refusal.Object, problem)
				continue
			}
			c.result.Problems = append(c.result.Problems, Finding{File: refusal.Source, Object: refusal.Object, Field: problem.Path, Message: problem.Text})
		}
	}
	if rest != nil {
		c.result.Problems = append(c.result.Problems, Finding{Message: rest.Error()})
	}
	return err != nil
}

// reportProblems adds what is wrong with a document.
func (c *checker) reportProblems(p *place, object string, problems ...strict.Problem) {
	for _, problem := range problems {
		finding := p.newFinding(object, problem.Path, problem.Text)
		if problem.Line > 0 && !p.fixed {
			finding.Line = p.line + problem.Line - 1
		}
		c.result.Problems = append(c.result.Problems, finding)
	}
}

// recordChecked records an object that is checked. With comparesNames it reports another one of the same
// kind and name.
func (c *checker) recordChecked(p *place, comparesNames bool) {
	kind, name := textAt(p.node, "kind"), textAt(p.node, "metadata", "name")
	finding := p.newFinding("", "", "")
	c.result.Checked = append(c.result.Checked, Checked{File: finding.File, Line: finding.Line, Kind: kind, Name: name})
	if !comparesNames {
		return
	}
	key := p.objectName() + " in " + textAt(p.node, "metadata", "namespace")
	if other, taken := c.names[key]; taken {
		c.reportProblems(p, p.objectName(), strict.Problem{Path: "metadata.name", Text: fmt.Sprintf("also in %s: rename one", other)})
	}
	c.names[key] = p.sourceName()
}

// errEmpty is the error for files without a document for kwok-dra.
var errEmpty = errors.New("nothing here is for kwok-dra: give files of ResourcePoolTemplates, KwokDRAConfigurations, Stages, or what carries them")

// Err is an error if nothing was checked.
func (r *Result) Err() error {
	if len(r.Checked)+len(r.Problems) == 0 {
		return errEmpty
	}
	return nil
}
