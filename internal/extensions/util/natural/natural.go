package natural

import (
	"cmp"
	"strings"
)

// Compare compares two names. Numbers in them are compared by their value, and
// the rest byte by byte.
func Compare(a, b string) int {
	left, right := a, b
	for left != "" && right != "" {
		var x, y string
		x, left = nextPart(left)
		y, right = nextPart(right)
		byLength := 0
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			byLength = cmp.Compare(len(x), len(y))
		}
		if c := cmp.Or(byLength, cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(left), len(right)), cmp.Compare(a, b))
}

// nextPart splits off the digits, or else the text without digits, at the beginning of a name.
func nextPart(name string) (part, rest string) {
	end := 1
	for end < len(name) && isDigit(name[end]) == isDigit(name[0]) {
		end++
	}
	return name[:end], name[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
