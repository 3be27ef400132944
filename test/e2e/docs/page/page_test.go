package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fence makes a Markdown text of one in which ”' stands for a fence.
func fence(text string) []byte {
	return []byte(strings.ReplaceAll(text, "'''", "```"))
}

const example = `# Quickstart
<!-- cluster: demo -->
<!-- note: the reader has never seen the project -->

Save this as gpus.yaml:
<!-- file: deep/gpus.yaml -->

'''yaml
kind: A
'''

## Look

<!-- retry -->
'''sh
kubectl get \
  nodes
'''

<!-- output -->
'''text
node/a
'''

1. In a list:

   <!-- skip: it takes an hour -->
   '''sh
   make test
   '''

'''text
a picture
'''

'''json
{"ignored": true}
'''

<!-- skip: a fragment --> <!-- note: two on a line -->
'''yaml
spec: {}
'''
'''yaml
kind: B
'''
<!-- background -->
'''sh
kwok-dra
'''
`

func TestParse(t *testing.T) {
	t.Parallel()
	page, err := Parse("example.md", fence(example))
	require.NoError(t, err)
	printed := "node/a\n"
	require.Equal(t, &Page{Cluster: Demo, Steps: []Step{
		{Kind: File, Line: 8, Section: "Quickstart", Text: "kind: A\n", File: "deep/gpus.yaml"},
		{Kind: Commands, Line: 15, Section: "Look", Text: "kubectl get \\\n  nodes\n", Retry: true, Output: &printed},
		{Kind: Commands, Line: 28, Section: "Look", Text: "make test\n", Skip: "it takes an hour"},
		{Kind: Document, Line: 41, Section: "Look", Text: "spec: {}\n", Skip: "a fragment"},
		{Kind: Document, Line: 44, Section: "Look", Text: "kind: B\n"},
		{Kind: Commands, Line: 48, Section: "Look", Text: "kwok-dra\n", Background: true},
	}}, page)
}

func TestPageWithoutCommands(t *testing.T) {
	t.Parallel()
	page, err := Parse("concepts.md", fence("# Concepts\n\nWords.\n\n'''yaml\nkind: A\n'''\n"))
	require.NoError(t, err)
	require.Empty(t, page.Cluster)
	require.Len(t, page.Steps, 1)
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const cluster = "<!-- cluster: none -->\n\n"
	for name, test := range map[string]struct{ page, want string }{
		"no cluster":              {"'''sh\nls\n'''\n", "page.md:1: the page has commands and does not say where they are run"},
		"unknown marker":          {cluster + "<!-- retyr -->\n'''sh\nls\n'''\n", `page.md:3: unknown marker "retyr": want one of background, `},
		"words in a comment":      {cluster + "<!-- this prints: -->\n'''text\nls\n'''\n", `page.md:3: unknown marker "this prints"`},
		"unknown cluster":         {"<!-- cluster: dmo -->\n", `page.md:1: unknown cluster "dmo": want demo, kwok or none`},
		"two clusters":            {cluster + "<!-- cluster: demo -->\n", "page.md:3: the page has a cluster already, none"},
		"a late cluster":          {"'''sh\nls\n'''\n\n" + cluster, "page.md:5: the cluster is named after the first block"},
		"no reason":               {cluster + "<!-- skip -->\n'''sh\nls\n'''\n", `page.md:3: marker "skip" has no value: add the reason, as in <!-- skip: ... -->`},
		"an empty reason":         {cluster + "<!-- skip: -->\n'''sh\nls\n'''\n", `page.md:3: marker "skip" has no value`},
		"a value too much":        {cluster + "<!-- retry: 3 -->\n'''sh\nls\n'''\n", `page.md:3: marker "retry" takes no value`},
		"a file without yaml":     {cluster + "<!-- file: a.yaml -->\n'''sh\nls\n'''\n", `page.md:3: marker "file" is not for a block of sh: it is for yaml`},
		"a file without a block":  {cluster + "<!-- file: a.yaml -->\n\nSave this:\n\n'''yaml\na: b\n'''\n", `page.md:3: marker "file" has no block after it`},
		"a marker at the end":     {cluster + "<!-- retry -->\n", `page.md:3: marker "retry" has no block after it`},
		"a marker before a title": {cluster + "<!-- retry -->\n# Title\n'''sh\nls\n'''\n", `page.md:3: marker "retry" has no block after it`},
		"a marker before HTML":    {cluster + "<!-- retry -->\n<details>\n\n'''sh\nls\n'''\n", `page.md:3: marker "retry" has no block after it`},
		"a marker in a line":      {cluster + "It prints <!-- output -->\n'''text\na\n'''\n", "page.md:3: <!-- output --> is in a line of text"},
		"a file elsewhere":        {cluster + "<!-- file: ../a.yaml -->\n'''yaml\na: b\n'''\n", `page.md:3: file "../a.yaml" is not below the working directory`},
		"bash":                    {cluster + "'''bash\nls\n'''\n", "page.md:3: a block of bash is not run: make it sh"},
		"output of nothing":       {cluster + "<!-- output -->\n'''text\na\n'''\n", "page.md:3: no sh block before this output prints it"},
		"output of a file":        {cluster + "'''sh\nls\n'''\n\n<!-- file: a.yaml -->\n'''yaml\na: b\n'''\n<!-- output -->\n'''text\na\n'''\n", "page.md:11: no sh block before this output prints it"},
		"two outputs":             {cluster + "'''sh\nls\n'''\n<!-- output -->\n'''text\na\n'''\n<!-- output -->\n'''text\nb\n'''\n", "page.md:10: the sh block of line 3 has an output already"},
		"output in yaml":          {cluster + "'''sh\nls\n'''\n<!-- output -->\n'''yaml\na: b\n'''\n", `page.md:6: marker "output" is not for a block of yaml: it is for text or console`},
		"output of the background": {
			cluster + "<!-- background -->\n'''sh\nls\n'''\n<!-- output -->\n'''text\na\n'''\n",
			"page.md:7: the sh block of line 4 runs in the background",
		},
		"the background, failing": {cluster + "<!-- background -->\n<!-- fails -->\n'''sh\nls\n'''\n", "page.md:5: how a block ends that runs in the background is not known"},
		"the background, again":   {cluster + "<!-- background -->\n<!-- retry -->\n'''sh\nls\n'''\n", "page.md:5: a block that runs in the background is not run again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("page.md", fence(test.page))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestAllProblems has a writer learn about all problems at once.
func TestAllProblems(t *testing.T) {
	t.Parallel()
	_, err := Parse("page.md", fence("<!-- a -->\n<!-- b -->\n'''sh\nls\n'''\n"))
	require.ErrorContains(t, err, `"a"`)
	require.ErrorContains(t, err, `"b"`)
	require.ErrorContains(t, err, "where they are run")
}
