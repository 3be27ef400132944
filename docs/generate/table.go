package main

import "strings"

// table writes a table in Markdown.
func table(head []string, rows [][]string) string {
	var text strings.Builder
	line := func(cells []string) {
		for _, cell := range cells {
			text.WriteString("| " + strings.ReplaceAll(oneLine(cell), "|", `\|`) + " ")
		}
		text.WriteString("|\n")
	}
	line(head)
	text.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return text.String()
}

// oneLine joins the lines of a text.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// code shows a value as code, and nothing where there is none.
func code(value string) string {
	if value == "" {
		return ""
	}
	return "`" + value + "`"
}

// capitalized begins a text with a capital, unless it begins with code.
func capitalized(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
