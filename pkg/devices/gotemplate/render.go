package gotemplate

import (
	"errors"
	"strings"
	"text/template"
)

// Shared is a value that all texts of a Renderer see. Get makes it for the first template, and is
// nil for no value.
type Shared struct {
	Name string
	Get  func() (any, error)
}

// Renderer renders texts within one budget, such as those of a template for a Node.
type Renderer struct {
	// Texts is how many texts there are.
	Texts  int
	Shared []Shared

	budget budget
	// templates are those of the programs that it has rendered. It is nil before the first.
	templates map[*program]*template.Template
}

// Render renders a text that has been parsed. A template sees the data, to which Render adds what
// is shared.
func (r *Renderer) Render(text *Text, data map[string]any) (string, error) {
	p := text.program
	if p == nil {
		return text.Source, nil
	}
	for _, shared := range r.Shared {
		data[shared.Name] = nil
		if shared.Get == nil {
			continue
		}
		var err error
		if data[shared.Name], err = shared.Get(); err != nil {
			return "", err
		}
	}
	if r.templates == nil {
		r.templates = map[*program]*template.Template{}
		r.budget.allTexts = rendererBudget + min(float64(r.Texts)*budgetPerText, maxPerTexts)
	}
	executable := r.templates[p]
	if executable == nil {
		executable, _ = template.New(p.tree.Name).Funcs(r.budget.chargedFunctions(p.functions)).AddParseTree(p.tree.Name, p.tree)
		r.templates[p] = executable
	}
	r.budget.text = valueBudget
	r.budget.output.Reset()
	if err := executable.Execute(&r.budget, data); err != nil {
		return "", err
	}
	rendered := r.budget.output.String()
	if strings.Contains(rendered, "\x00") {
		return "", errors.New("a value rendered a NUL character")
	}
	return rendered, nil
}
