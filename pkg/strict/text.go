package strict

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// gzipMark begins what gzip has compressed.
var gzipMark = []byte("\x1f\x8b")

// checkText refuses a text that is not UTF-8, or has NUL bytes. The YAML library would
// read only a part of some of them, and say nothing.
func checkText(text []byte) Problems {
	if bytes.HasPrefix(text, gzipMark) {
		return Problems{{Line: 1, Text: "the text is compressed by gzip: decompress it"}}
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
