package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl"
	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra"
)

// commands shows the help of kwok-dractl and its commands.
func commands(string) (string, error) {
	return describeAll(dractl.New(cli.Streams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})), nil
}

// pluginCommands shows the help of the plugin of kubectl and its commands.
func pluginCommands(string) (string, error) {
	return describeAll(kubectldra.New(genericiooptions.NewTestIOStreamsDiscard())), nil
}

func describeAll(root *cobra.Command) string {
	var text strings.Builder
	fmt.Fprintf(&text, "## Common options\n\nEvery command has these options.\n\n%s", flagTable(root.PersistentFlags()))
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() && command.Name() != "help" {
			describe(&text, command)
		}
	}
	return text.String()
}

// describe shows the help of a command, and of those below it.
func describe(text *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(text, "\n## %s\n\n%s\n", command.CommandPath(), prose(longest(command)))
	fmt.Fprintf(text, "\n```text\n%s\n```\n", command.UseLine())
	if command.Example != "" {
		fmt.Fprintf(text, "\nExamples:\n\n```text\n%s\n```\n", dedent(command.Example))
	}
	if local := command.NonInheritedFlags(); local.HasAvailableFlags() {
		fmt.Fprintf(text, "\n%s", flagTable(local))
	}
	for _, child := range command.Commands() {
		if child.IsAvailableCommand() && command.Name() != "completion" {
			describe(text, child)
		}
	}
}

// longest is the longest text that describes a command.
func longest(command *cobra.Command) string {
	if command.Long != "" {
		return command.Long
	}
	return command.Short
}

// indented are the lines of a text that stand for themselves.
var indented = regexp.MustCompile(`(?m)(^[ \t]+\S.*\n?)+`)

// prose makes Markdown of a help text: what is indented is shown as it is.
func prose(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "<", "&lt;") + "\n"
	text = indented.ReplaceAllStringFunc(text, func(block string) string {
		return "\n```text\n" + strings.ReplaceAll(dedent(block), "&lt;", "<") + "\n```\n"
	})
	return strings.TrimSpace(regexp.MustCompile(`\n{3,}`).ReplaceAllString(text, "\n\n"))
}

// dedent removes the indentation that all lines have.
func dedent(text string) string {
	lines := strings.Split(strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n"), "\n")
	least := -1
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if strings.TrimSpace(line) != "" && (least < 0 || indent < least) {
			least = indent
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(least, 0), len(line)):], " \t")
	}
	return strings.Join(lines, "\n")
}
