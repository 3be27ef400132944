package strict

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// encodings are marks at the beginning of a text that is no UTF-8, and what to do with it.
var encodings = []struct{ mark, text string }{
	{"\x1f\x8b", "compressed by gzip: decompress it"},
	{"\xff\xfe", "UTF-16, which > of PowerShell writes: save it as UTF-8"},
	{"\xfe\xff", "UTF-16: save it as UTF-8"},
}

// checkText refuses a text that is not UTF-8, or has NUL bytes. The YAML library would
// read only a part of some of them, and say nothing.
func checkText(text []byte) Problems {
	for _, e := range encodings {
		if bytes.HasPrefix(text, []byte(e.mark)) {
			return Problems{{Line: 1, Text: "the text is " + e.text}}
		}
	}
	problem := func(at int, what string) Problems {
		return Problems{{Line: 1 + bytes.Count(text[:at], []byte("\n")), Text: fmt.Sprintf("the byte 0x%02x at offset %d is %s", text[at], at, what)}}
	}
	for at := 0; at < len(text); {
		character, size := utf8.DecodeRune(text[at:])
		switch {
		case character == utf8.RuneError && size == 1:
			return problem(at, "not UTF-8: save the text as UTF-8, for example with iconv -f latin1 -t utf-8")
		case character == 0:
			return problem(at, "no text: save the text as UTF-8, without NUL bytes")
		}
		at += size
	}
	return nil
}
