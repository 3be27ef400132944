package strict

import (
	"errors"
	"fmt"
	"strings"
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

// fussy refuses null and whatever else is no text.
type fussy string

func (f *fussy) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return errors.New("must be text")
	}
	*f = fussy(data)
	return nil
}

// TestKeepsTheRestOfAnObject: a field that does not fit is left out, since its type may refuse null.
func TestKeepsTheRestOfAnObject(t *testing.T) {
	t.Parallel()
	var got struct {
		Count int32 `json:"count"`
		Part  struct {
			Fussy fussy `json:"fussy"`
			Other int32 `json:"other"`
		} `json:"part"`
	}
	problems := decodeText(t, `{count: 7, part: {fussy: 1, other: 2}}`, &got)
	require.EqualError(t, problems, "spec.part.fussy: Invalid value: 1: must be text")
	require.EqualValues(t, 7, got.Count)
	require.EqualValues(t, 2, got.Part.Other)
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
	require.True(t, Problems{{Text: "no valid YAML"}}.Hides("spec"))
}

func TestSplit(t *testing.T) {
	t.Parallel()
	utf16 := func(text string) string {
		encoded := "\xff\xfe"
		for _, char := range text {
			encoded += string([]byte{byte(char), byte(char >> 8)})
		}
		return encoded
	}
	for text, want := range map[string][]string{
		"a: 1\n---\n# nothing\n---\nb: 1\n":          {"1 a: 1", "3 # nothing", "5 b: 1"},
		"a: 1\n--- b\n":                              {"1 a: 1", "2 --- b"},
		"--- {a: 1}\n---\t{b: 1}\n":                  {"1 --- {a: 1}", "2 ---\t{b: 1}"},
		"---a: 1\n":                                  {"1 ---a: 1"},
		"a: 1\r\n--- # end\r\nb: 1\r\n":              {"1 a: 1", "3 b: 1"},
		"{\"a\": 1}\n{\"b\":\n 1} {\"c\": 1}\n\n[1]": {`1 {"a": 1}`, "2 {\"b\":\n 1}", `3 {"c": 1}`, "5 [1]"},
		"# one\n{\"a\": 1}{\"b\": 1}\n# two\n":       {"2 {\"a\": 1}", "2 {\"b\": 1}\n# two"},
		"{\"a\": 1}\n# two\n{\"b\": 1}\n---\nc: 1":   {"1 {\"a\": 1}", "2 # two\n{\"b\": 1}", "5 c: 1"},
		"{\"a\": 1},\n{\"b\": 1}":                    {`1 {"a": 1}`, "1 ,\n{\"b\": 1}"},
		"\uFEFF{\"a\": 1}\n\uFEFF{\"b\": 1}":         {`1 {"a": 1}`, `2 {"b": 1}`},
		"\uFEFF---\na: 1\n":                          {"2 a: 1"},
		utf16("a: 1\r\n---\r\nb: 1"):                 {"1 a: 1", "3 b: 1"},
		"":                                           nil,
	} {
		var got []string
		for _, one := range Split([]byte(text)) {
			got = append(got, fmt.Sprintf("%d %s", one.Line, strings.TrimSpace(string(one.Data))))
		}
		require.Equal(t, want, got, "%q", text)
	}
}

// TestParseReadsAllOrNothing: no part of a text is dropped without a word.
func TestParseReadsAllOrNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{a: 1}\n{b: 1}\n":         "there is text after the end of the document: begin a document with the line ---",
		"[a]\nb: 1\n":              "there is text after the end of the document",
		"# one\n\"a\"\n{b: 1}\n":   "there is text after the end of the document",
		"a: 1\n...\nb: 1\n":        "there is text after the end of the document, the line ...",
		"a: |\n  ...\nb: {c: 1}\n": "",
		"{a: 1}\n# two\n":          "",
		"{a: 1}\n...\n":            "",
		`{"a": "\ud83d\ude00"}`:    "",
		`{"a": 1, "a": 2}`:         `the field "a" is there twice`,
	} {
		_, problems := Parse([]byte(text))
		if want == "" {
			require.Empty(t, problems, "%q", text)
			continue
		}
		require.ErrorContains(t, problems, want, "%q", text)
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	document, problems := Parse([]byte(`{kind: List, apiVersion: v1, items: [
		{kind: PodList, apiVersion: v1, items: [{metadata: {name: a}}, {kind: Pod, apiVersion: v2}]}, {kind: Node, items: []}, text]}`))
	require.Empty(t, problems)
	items, isList := document.Items()
	require.True(t, isList)
	var got []string
	for _, item := range items {
		got = append(got, Shown(item.Value))
	}
	require.Equal(t, []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, `{"apiVersion":"v2","kind":"Pod"}`, `{"items":[],"kind":"Node"}`, `"text"`,
	}, got)
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
		"\x1f\x8b\x08a: 1\n":   "line 1 of the document: the text is compressed by gzip: decompress it",
		"\xef\xbb\xbfa: 1 # ü": "",
	} {
		_, problems := Parse([]byte(text))
		if want == "" {
			require.Empty(t, problems)
			continue
		}
		require.Equal(t, want, problems.Error())
	}
}
