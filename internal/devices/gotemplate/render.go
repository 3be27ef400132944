package gotemplate

import (
	"errors"
	"maps"
	"strings"
	"text/template"
	"unicode/utf8"
)

// A budget bounds what rendering may cost, so that a template which never ends, or makes more than
// there is memory, neither delays nor harms anything else. It is the only such bound. All is paid
// from it in bytes: what a call reads, before it is made; what it returns; each round of a loop;
// and the output.
//
// No function changes its arguments, so a value costs what it weighs when a function returns it.
// Costs do not depend on a clock: what is refused is the same on a busy machine, and in all
// replicas.
const (
	// textBudget is for one text. It lets an annotation of the largest size be read as JSON.
	textBudget = 2 << 20
	// rendererBudget and budgetPerText are for all texts of a renderer, of which all budgetPerText
	// are at most maxPerTexts.
	rendererBudget, budgetPerText = 64 << 20, 256 << 10
	maxPerTexts                   = 1 << 30
	// stepCost is for each call, each round of a loop and each comparison in it, elementCost for
	// each element of a list or map besides the bytes of its text.
	stepCost, elementCost = 64, 16
	// outputCost is for each byte of output, which lives on in API objects: a text has at most
	// 73 KiB.
	outputCost = 28
	// maxDepth is how deep maps and lists may be nested.
	maxDepth = 100
)

var errTooMuch = errors.New("takes too much time or memory: loops have too many rounds, or values are too large")

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

	// left is what is left for all texts, and budget what is left for the one that is rendered.
	left   float64
	budget budget
	// templates are those of the programs that it has rendered, and seen is what the last text has
	// seen. They are nil before the first.
	templates map[*program]*template.Template
	seen      map[string]any
}

// Render renders a text that has been parsed. A template sees the data, and what is shared.
func (r *Renderer) Render(text *Text, data map[string]any) (string, error) {
	p := text.program
	if p == nil {
		return text.Source, nil
	}
	if r.templates == nil {
		r.templates, r.seen = map[*program]*template.Template{}, map[string]any{}
		r.left = rendererBudget + min(float64(r.Texts)*budgetPerText, maxPerTexts)
	}
	clear(r.seen)
	maps.Copy(r.seen, data)
	for _, shared := range r.Shared {
		r.seen[shared.Name] = nil
		if shared.Get == nil {
			continue
		}
		var err error
		if r.seen[shared.Name], err = shared.Get(); err != nil {
			return "", err
		}
	}
	executable := r.templates[p]
	if executable == nil {
		executable = template.New(p.tree.Name)
		if len(p.functions) > 0 {
			executable.Funcs(r.budget.chargedFunctions(p.functions))
		}
		executable, _ = executable.AddParseTree(p.tree.Name, p.tree)
		r.templates[p] = executable
	}
	limit := min(textBudget, r.left)
	r.budget.left = limit
	r.budget.output.Reset()
	err := executable.Execute(&r.budget, r.seen)
	r.left -= limit - r.budget.left
	if err != nil {
		return "", err
	}
	rendered := r.budget.output.String()
	switch {
	case strings.Contains(rendered, "\x00"):
		return "", errors.New("a value rendered a NUL character")
	case !utf8.ValidString(rendered): // JSON would replace it, so that what is stored never equals what is wanted
		return "", errors.New("a value rendered a part of a character, not UTF-8: trunc, substr and indexes count bytes, and b64dec may yield any")
	}
	return rendered, nil
}

// budget is what is left for the text that is rendered now. It takes the output.
type budget struct {
	left   float64
	output strings.Builder
}

func (b *budget) payCost(cost float64) error {
	b.left -= cost
	if b.left >= 0 { // not true for NaN
		return nil
	}
	return errTooMuch
}

// Write pays for output.
func (b *budget) Write(text []byte) (int, error) {
	if err := b.payCost(outputCost * float64(len(text))); err != nil {
		return 0, err
	}
	return b.output.Write(text)
}
