// Command generate fills in the parts of the reference pages whose source is the
// code: options, commands, metrics, events, conditions and fields.
//
// A page marks such a part with two comments, and everything around it is written
// by hand:
//
//	<!-- note: generated NAME, by make generate-docs -->
//	<!-- note: end of generated -->
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run fills in all pages of the repository.
func run(root string) error {
	pages, err := pages(root)
	if err != nil {
		return err
	}
	for _, page := range pages {
		written, err := os.ReadFile(page)
		if err != nil {
			return fmt.Errorf("read a page: %w", err)
		}
		filled, err := fill(root, string(written))
		if err != nil {
			return fmt.Errorf("fill in %s: %w", page, err)
		}
		if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return nil
}

// pages are those that may have generated parts.
func pages(root string) ([]string, error) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err == nil && len(pages) == 0 {
		err = errors.New("there is no docs/reference: run it in the root of the repository")
	}
	return append(pages, filepath.Join(root, "docs", "works-with.md")), err
}

// part is a generated part of a page.
var part = regexp.MustCompile(`(?s)<!-- note: generated (\S+), by make generate-docs -->\n.*?<!-- note: end of generated -->`)

// generators make the parts by their names.
var generators = map[string]func(root string) (string, error){
	"options":                      options,
	"commands":                     commands,
	"plugin-commands":              pluginCommands,
	"metrics":                      metrics,
	"device-metrics":               deviceMetrics,
	"prepare-failures":             prepareFailures,
	"events":                       events,
	"names":                        names,
	"template-conditions":          templateConditions,
	"fields-resourcepooltemplates": fieldsOf("resourcepooltemplates"),
	"fields-kwokdraconfigurations": fieldsOf("kwokdraconfigurations"),
	"scheduler-statements":         schedulerStatements,
	"autoscaler-statements":        autoscalerStatements,
	"others-1.36":                  othersOn("1.36"),
	"others-1.37":                  othersOn("1.37"),
}

// fill fills in the generated parts of a page.
func fill(root, page string) (string, error) {
	var problems []error
	filled := part.ReplaceAllStringFunc(page, func(found string) string {
		name := part.FindStringSubmatch(found)[1]
		generate := generators[name]
		if generate == nil {
			problems = append(problems, fmt.Errorf("there is no generated part %q", name))
			return found
		}
		text, err := generate(root)
		problems = append(problems, err)
		return "<!-- note: generated " + name + ", by make generate-docs -->\n\n" + text + "\n<!-- note: end of generated -->"
	})
	return filled, errors.Join(problems...)
}
