package fleet

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kwok-dra/kwok-dra/internal/util/suggest"
)

// NearestName guesses which template or profile a name means: the shortest that has all parts of the name
// in any order, as nvidia-h100 for h100, or else the one that is spelled most alike.
func NearestName(name string, known []string) string {
	split := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_. /", r) })
	}
	found, wanted := "", split(name)
	for _, candidate := range known {
		isShorter := found == "" || len(candidate) < len(found)
		if isShorter && len(wanted) > 0 && sets.New(split(candidate)...).HasAll(wanted...) {
			found = candidate
		}
	}
	return cmp.Or(found, suggest.Nearest(name, known))
}
