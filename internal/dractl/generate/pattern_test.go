package generate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

func TestIndexed(t *testing.T) {
	t.Parallel()
	renderer := gotpl.NewRenderer(nil)
	for _, test := range []struct{ values, want string }{
		{"a", "a"},
		{"a a a", "a"},
		{"0 1 2", "{{ .Index }}"},
		{"gpu-0 gpu-1", "gpu-{{ .Index }}"},
		{"9 10 11", "{{ add 9 .Index }}"},
		{"10 20 30", "{{ add 10 (mul 10 .Index) }}"},
		{"3 2 1", "{{ add 3 (mul -1 .Index) }}"},
		{"0 0 1 1", "{{ div .Index 2 }}"},
		{"0 1 0 1", "{{ mod .Index 2 }}"},
		{"dev0x dev1x", "dev{{ .Index }}x"},
		{"0000:53:00.0 0000:64:00.0", `0000:{{ index (list "53" "64") .Index }}:00.0`},
		{"0000:c9:00.0 0000:ca:00.0", `0000:{{ index (list "c9" "ca") .Index }}:00.0`},
		{"00 01 02", `{{ index (list "00" "01" "02") .Index }}`},
		{"a aa", `{{ index (list "a" "aa") .Index }}`},
		{"ä-1 ö-1", `{{ index (list "ä" "ö") .Index }}-1`},
		{"{{x}} {{y}}", `{{ "{{" }}{{ index (list "x" "y") .Index }}}}`},
		{`"q"1 "q"2`, `"q"{{ add 1 .Index }}`},
	} {
		values := strings.Fields(test.values)
		require.Equal(t, test.want, indexTemplate(values))
		for i, want := range values {
			got, err := renderer.ToText(fmt.Sprintf(`{{with dict "Index" %d}}%s{{end}}`, i, test.want), nil)
			require.NoError(t, err)
			require.Equal(t, want, string(got), test.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ names, want string }{
		{"gpu-0 gpu-1", "gpu 2"},
		{"gpu-0", "gpu-0"},
		{"gpu-1 gpu-2", "gpu-{{ add 1 .Index }} 2"},
		{"0 1 2", "{{ .Index }} 3"},
		{"channel-0 daemon-0", `{{ index (list "channel" "daemon") .Index }}-0 2`},
	} {
		name, count := nameDevices(strings.Fields(test.names))
		if count != nil {
			name += fmt.Sprintf(" %d", *count)
		}
		require.Equal(t, test.want, name)
	}
}
