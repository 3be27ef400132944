package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/generate"
)

const (
	// actionBegin and actionEnd are around what a template inserts.
	actionBegin, actionEnd = "{{ ", " }}"
	// shortest is the least length at which a value that all devices share is no coincidence.
	shortest = 4
)

// symbol is a fact of several prepared devices, with the value for each.
type symbol struct {
	fact

	values  []string
	differs bool
}

// symbolsOf are the facts that all of the devices have.
func symbolsOf(all []*prepared) []symbol {
	var symbols []symbol
	others := make([]map[string]string, len(all))
	for i, p := range all {
		others[i] = map[string]string{}
		for _, f := range p.listFacts() {
			others[i][f.expression] = f.value
		}
	}
	for _, f := range all[0].listFacts() {
		made := symbol{fact: f}
		for _, values := range others {
			if value := values[f.expression]; value != "" {
				made.values = append(made.values, value)
				made.differs = made.differs || value != f.value
			}
		}
		if len(made.values) == len(all) && (made.differs || !telling.Has(f.expression)) {
			symbols = append(symbols, made)
		}
	}
	return symbols
}

// findWholeSymbol finds the symbol that is all of the texts, best one whose name is that of the field.
func findWholeSymbol(symbols []symbol, key string, texts []string) string {
	found := ""
	for _, s := range symbols {
		if !slices.Equal(s.values, texts) {
			continue
		}
		if strings.EqualFold(s.key[strings.LastIndex(s.key, "/")+1:], key) {
			return s.expression
		}
		if found == "" && (s.differs || len(s.value) >= shortest) {
			found = s.expression
		}
	}
	return found
}

// alignment finds a template that yields all of the texts: in each the same characters,
// and between them values of symbols.
type alignment struct {
	texts   []string
	symbols []symbol
	// failed are the places from which there is no way to the ends.
	failed map[string]bool
}

// alignFrom returns the template for what follows the places, one in each text.
func (a *alignment) alignFrom(at []int) (string, bool) {
	key := fmt.Sprint(at)
	if a.failed[key] {
		return "", false
	}
	ended := true
	for i, text := range a.texts {
		ended = ended && at[i] == len(text)
	}
	if ended {
		return "", true
	}
	for _, s := range a.symbols {
		if made, ok := a.continueWith(actionBegin+s.expression+actionEnd, a.skipSymbol(at, s)); ok {
			return made, true
		}
	}
	if made, ok := a.continueWith(a.commonCharacter(at)); ok {
		return made, true
	}
	a.failed[key] = true
	return "", false
}

// continueWith returns the template that begins like this, and goes on from the next places, if there are any.
func (a *alignment) continueWith(begin string, next []int) (string, bool) {
	if next == nil {
		return "", false
	}
	rest, ok := a.alignFrom(next)
	return begin + rest, ok
}

// commonCharacter returns the character that follows in all texts, and the places after it, or nil.
func (a *alignment) commonCharacter(at []int) (string, []int) {
	next := slices.Clone(at)
	for i, text := range a.texts {
		if at[i] == len(text) || at[0] == len(a.texts[0]) || text[at[i]] != a.texts[0][at[0]] {
			return "", nil
		}
		next[i]++
	}
	return a.texts[0][at[0]:next[0]], next
}

// skipSymbol returns the places after the values of a symbol, or nil where one does not follow.
func (a *alignment) skipSymbol(at []int, s symbol) []int {
	next := slices.Clone(at)
	for i, text := range a.texts {
		if !strings.HasPrefix(text[at[i]:], s.values[i]) {
			return nil
		}
		next[i] += len(s.values[i])
		isWord := at[i] == 0 || !generate.IsAlphanumeric(text[at[i]-1])
		isWord = isWord && (next[i] == len(text) || !generate.IsAlphanumeric(text[next[i]]))
		if !s.differs && (!isWord || len(s.value) < shortest) {
			return nil
		}
	}
	return next
}
