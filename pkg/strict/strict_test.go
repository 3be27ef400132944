package strict

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// word gets scalars as they are written.
type word string

func (w *word) UnmarshalText(text []byte) error {
	*w = word(text)
	return nil
}

type Inner struct {
	Count *int32 `json:"count"`
}

type outer struct {
	Inner `json:",inline"`

	Words map[string]*word `json:"words"`
	Items []Inner          `json:"items"`
	Any   any              `json:"any"`
}

func decodeText(t *testing.T, text string, into any) Problems {
	t.Helper()
	document, problems := Parse([]byte(text))
	require.Empty(t, problems)
	return document.Decode(into, field.NewPath("spec"))
}

// TestDecodesWhatFits: one problem does not hide another, and the rest is there.
func TestDecodesWhatFits(t *testing.T) {
	t.Parallel()
	var got outer
	problems := decodeText(t, `{count: 7, cuont: 8, items: [{count: 1}, x, {count: 1.0}], words: {a: [b], c: d}, any: {a: 1.50}}`, &got)
	require.EqualError(t, problems, `4 problems:
  spec.cuont: Unknown field: did you mean count?
  spec.items[1]: Invalid value: "x": must be an object with fields such as count
  spec.items[2].count: Invalid value: 1.0: must be an integer of 32 bits; use 1
  spec.words[a]: Invalid value: ["b"]: must be text, not a list`)
	require.True(t, problems[0].Unknown)
	require.EqualValues(t, 7, *got.Count)
	require.Len(t, got.Items, 3)
	require.EqualValues(t, 1, *got.Items[0].Count)
	require.Equal(t, map[string]*word{"c": new(word("d"))}, got.Words)
	require.Equal(t, map[string]any{"a": 1.5}, got.Any)
}

// TestScalarsAsWritten: JSON has 16 for 0x10, and true for yes.
func TestScalarsAsWritten(t *testing.T) {
	t.Parallel()
	var got outer
	require.Empty(t, decodeText(t, "words: &w {a: 0x10, b: yes, c: 9.0, d: 1e3, e: '7', f: null}\nany: *w", &got))
	want := map[string]*word{"a": new(word("0x10")), "b": new(word("yes")), "c": new(word("9.0")), "d": new(word("1e3")), "e": new(word("7")), "f": nil}
	require.Equal(t, want, got.Words)
}

func TestHides(t *testing.T) {
	t.Parallel()
	problems := Problems{{Path: "spec.items[1].cuont", meant: "spec.items[1].count"}}
	for path, want := range map[string]bool{
		"spec.items[1].cuont": true, "spec.items[1].count": true, "spec.items[1].count.x": true, "spec.items[1]": true, "spec": true,
		"spec.items[1].counter": false, "spec.items[10]": false, "spec.items[0].count": false, "metadata.name": false,
	} {
		require.Equal(t, want, problems.Hides(path), path)
	}
	require.True(t, Problem{Text: "no valid YAML"}.Hides("spec"))
}

func TestSplit(t *testing.T) {
	t.Parallel()
	documents, err := Split([]byte("a: 1\n---\n# nothing\n---\nb: 1\n"))
	require.NoError(t, err)
	require.Len(t, documents, 3)
	_, err = Split([]byte("a: 1\n--- b\n"))
	require.EqualError(t, err, "read document 1: invalid Yaml document separator: b")
}

// FuzzParse: no text makes decoding panic, and what kubectl reads is read alike.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: &a [*a]", "a: &a {b: 1}\nc: {<<: *a}", "1.50", "? [a]\n: b", "&a *a", "- 0x1_0", "{\"a\": 1e400}", "a: .inf", "%YAML 1.1\n---\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, problems := Parse(text)
		if len(problems) > 0 {
			return
		}
		var got, want any
		problems = document.Decode(&got, nil)
		require.NoError(t, yaml.Unmarshal(text, &want))
		if len(problems) == 0 {
			require.Equal(t, want == nil, got == nil)
		}
	})
}

// TestNoText: what is no text is refused, and not read in part.
func TestNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\nb: \xfc\n":      "line 2 of the document: the byte 0xfc at offset 8 is not UTF-8: save the text as UTF-8, for example with iconv -f latin1 -t utf-8",
		"a: 1\n\x00":           "line 2 of the document: the byte 0x00 at offset 5 is no text: save the text as UTF-8, without NUL bytes",
		"a: \xe2\x82":          "line 1 of the document: the byte 0xe2 at offset 3 is not UTF-8: save the text as UTF-8, for example with iconv -f latin1 -t utf-8",
		"\xff\xfea\x00:\x00":   "line 1 of the document: the text is UTF-16, which > of PowerShell writes: save it as UTF-8",
		"\xfe\xff\x00a\x00:":   "line 1 of the document: the text is UTF-16: save it as UTF-8",
		"\x1f\x8b\x08a: 1\n":   "line 1 of the document: the text is compressed by gzip: decompress it",
		"\xef\xbb\xbfa: 1 # ü": "",
	} {
		_, err := Split([]byte(text))
		_, problems := Parse([]byte(text))
		if want == "" {
			require.NoError(t, err)
			require.Empty(t, problems)
			continue
		}
		require.EqualError(t, err, want)
		require.Equal(t, want, problems.Error())
	}
}
