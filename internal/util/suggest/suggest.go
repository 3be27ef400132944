package suggest

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

var separators = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// Nearest finds the known word that differs from the given one only in case and separators, or in a
// letter or two, or else one that abbreviates it, or that it abbreviates.
func Nearest(word string, known []string) string {
	const leastAbbreviation = 3
	word = strings.ToLower(word)
	near, fewest, abbreviation := "", 1+max(1, len(word)/3), ""
	for _, candidate := range known {
		other := strings.ToLower(candidate)
		if separators.Replace(other) == separators.Replace(word) {
			return candidate
		}
		if d := Distance(word, other); d < fewest {
			near, fewest = candidate, d
		}
		if abbreviation == "" && min(len(word), len(other)) >= leastAbbreviation && (strings.HasPrefix(word, other) || strings.HasPrefix(other, word)) {
			abbreviation = candidate
		}
	}
	return cmp.Or(near, abbreviation)
}

// DidYouMean proposes the known word that is nearest, for the end of an error.
func DidYouMean[T ~string](word T, known []T) string {
	words := make([]string, len(known))
	for i := range known {
		words[i] = string(known[i])
	}
	if nearest := Nearest(string(word), words); nearest != "" {
		return fmt.Sprintf("; did you mean %q?", nearest)
	}
	return ""
}

// Distance counts the letters to add, drop, change or swap with the next that turn one word into
// another.
func Distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// replaceOthers makes a name of letters, digits and the separator of a text: other characters than
// these and the kept ones become separators, of which there are none at the ends.
func replaceOthers(text, separator, kept string) string {
	name := regexp.MustCompile("[^a-zA-Z0-9"+kept+"]").ReplaceAllString(text, separator)
	return strings.Trim(name, separator+kept)
}

// Label makes a DNS label of a text.
func Label(text string) string {
	return replaceOthers(strings.ToLower(text), "-", "")
}

// Subdomain makes a DNS subdomain of a text. It turns round a domain and a name, as in the name of an
// extended resource.
func Subdomain(text string) string {
	text = strings.ToLower(text)
	if domain, name, ok := strings.Cut(text, "/"); ok && strings.Contains(domain, ".") && !strings.Contains(name, "/") {
		text = name + "." + domain
	}
	return replaceParts(text, ".", Label)
}

// PoolName makes DNS subdomains with slashes between them of a text.
func PoolName(text string) string {
	return replaceParts(text, "/", Subdomain)
}

// replaceParts replaces the parts of a text between separators, and drops empty ones.
func replaceParts(text, separator string, replace func(string) string) string {
	var parts []string
	for part := range strings.SplitSeq(text, separator) {
		if part = replace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, separator)
}

// LabelValue makes the value of a label of a text.
func LabelValue(text string) string {
	return replaceOthers(text, "-", "_.")
}

// LabelKey makes the key of a label of a text: a name, with or without a domain before it.
func LabelKey(text string) string {
	domain, name, hasDomain := strings.Cut(text, "/")
	if !hasDomain {
		return LabelValue(text)
	}
	return strings.TrimPrefix(Subdomain(domain)+"/"+LabelValue(name), "/")
}

// Identifier makes a C identifier of a text.
func Identifier(text string) string {
	name := replaceOthers(text, "_", "")
	if name != "" && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// exponent matches exponents so large that arithmetic would not end.
var exponent = regexp.MustCompile(`[eE][-+]?\d{3,}$`)

// ParseQuantity parses a quantity. The error says what the text must be.
func ParseQuantity(text string) (resource.Quantity, error) {
	trimmed := strings.TrimSpace(text)
	if !exponent.MatchString(trimmed) {
		if quantity, err := resource.ParseQuantity(trimmed); err == nil {
			return quantity, nil
		}
	}
	message := "must be a quantity, for example 80Gi"
	meant, binary := Quantity(text)
	if meant != "" {
		message += fmt.Sprintf("; use %q", meant)
	}
	if binary != "" {
		message += fmt.Sprintf(", or %q for binary units", binary)
	}
	return resource.Quantity{}, errors.New(message)
}

var amount = regexp.MustCompile(`^\s*([+-]?[0-9.,]+)\s*([kmgtpe]?)(i?)(b|bytes?)?\s*$`)

// Quantity finds the quantity in amounts such as 80GiB, 80 GB and 1,000, and the one in binary units
// that an amount in decimal ones, such as 80GB, may mean.
func Quantity(text string) (quantity, binary string) {
	parts := amount.FindStringSubmatch(strings.ToLower(text))
	if parts == nil || parts[2] == "" && parts[3] != "" {
		return "", ""
	}
	number, unit := strings.ReplaceAll(parts[1], ",", ""), strings.ToUpper(parts[2])
	if quantity = number + unit + parts[3]; unit == "K" && parts[3] == "" {
		quantity = number + "k"
	}
	if _, err := resource.ParseQuantity(quantity); err != nil {
		return "", ""
	}
	if unit == "" || parts[3] != "" || parts[4] == "" {
		return quantity, ""
	}
	binary = number + unit + "i"
	if _, err := resource.ParseQuantity(binary); err != nil { // .Ei
		return quantity, ""
	}
	return quantity, binary
}

var numbers = regexp.MustCompile(`^[vV]?\s*([0-9]+)(\.[0-9]+)?(\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?$`)

// Version turns versions such as 9.0 and v1.02.3 into three numbers.
func Version(text string) string {
	parts := numbers.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return ""
	}
	version := make([]string, 3)
	for i := range version {
		version[i] = cmp.Or(strings.TrimLeft(parts[i+1], ".0"), "0")
	}
	return strings.Join(version, ".") + parts[4]
}

var span = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)$`)

var units = map[string]string{
	"": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"hr": "h", "hrs": "h", "hour": "h", "hours": "h", "msec": "ms", "millisecond": "ms", "milliseconds": "ms",
}

// Duration turns spans such as 5, 5 seconds and 1d into a duration.
func Duration(text string) string {
	parts := span.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if parts == nil {
		return ""
	}
	number, unit := parts[1], parts[2]
	if days, err := strconv.Atoi(number); err == nil && (unit == "d" || unit == "day" || unit == "days") {
		return fmt.Sprintf("%dh", days*24)
	}
	unit = cmp.Or(units[unit], unit)
	if _, err := time.ParseDuration(number + unit); err != nil {
		return ""
	}
	return number + unit
}
