package parameters

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
)

// BenchmarkCheck has parameters as large as they may be, and schemas that take as long as
// they may for each of their values.
func BenchmarkCheck(b *testing.B) {
	const begin, end = `{"apiVersion":"v1","kind":"A","a":[`, `]}`
	left := resourcev1.OpaqueParametersMaxLength - len(begin) - len(end)
	for name, test := range map[string]struct{ rule, value string }{
		"values":   {`{}`, strings.Repeat(`"",`, left/3-1) + `""`},
		"patterns": {`{"pattern":"(a|aa)*b"}`, `"` + strings.Repeat("a", left-2) + `"`},
	} {
		b.Run(name, func(b *testing.B) {
			kinds := compiled(b, `{kinds: [{apiVersion: v1, kind: A, schema: {type: object, properties: {a: {type: array, items: {type: string, anyOf: [`+
				strings.Repeat(test.rule+", ", maxNested-1)+test.rule+`]}}}}}]}`)
			for b.Loop() {
				_ = kinds.Check("d", []byte(begin+test.value+end))
			}
			require.NotNil(b, kinds)
		})
	}
}
