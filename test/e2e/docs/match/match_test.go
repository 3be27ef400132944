package match

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want, got string
		matches   bool
	}{
		"the same":                     {"a\nb\n", "a\nb\n", true},
		"nothing":                      {"", "\n", true},
		"another line":                 {"a\nb", "a\nc", false},
		"progress":                     {"a\nb", "a\ncopying pools ... 2 s\nlooking ... 3 of 10, 7 s\nb", true},
		"a line more":                  {"a", "a\nb", false},
		"a line less":                  {"a\nb", "a", false},
		"nothing printed":              {"a", "", false},
		"wider columns":                {"NAME   AGE", "NAME        AGE  ", true},
		"no column":                    {"NAME AGE", "NAMEAGE", false},
		"another age":                  {"h100-0   Ready   12s", "h100-0   Ready   3m4s", true},
		"another duration":             {"ready after 52 ms", "ready after 6 ms", true},
		"another number":               {"8 devices", "7 devices", false},
		"another size":                 {"memory 80Gi", "memory 40Gi", false},
		"another index":                {"gpu-3", "gpu-4", false},
		"another name that is made up": {"pod/train-7d4b9c6f5d-x7k2p created", "pod/train-6b5c9d8f7d-zz9xk created", true},
		"another name":                 {"pod/train-abcde", "pod/train-aeiou", false},
		"a name that has a suffix":     {"h100-0-gpu.nvidia.com-x7k2p", "h100-1-gpu.nvidia.com-q9k2p", false},
		"another UUID":                 {"GPU-8d0f8a52-0c4b-5b6e-9d6f-0a1b2c3d4e5f", "GPU-11111111-2222-3333-4444-555555555555", true},
		"no UUID":                      {"GPU-8d0f8a52-0c4b-5b6e-9d6f-0a1b2c3d4e5f", "GPU-0", false},
		"another time":                 {"at 2026-11-22T17:00:01Z", "at 2026-11-23T07:10:21.123Z", true},
		"another time of day":          {"17:00:01.123 created", "07:10:21.9 created", true},
		"another port":                 {"http://127.0.0.1:10246/", "http://127.0.0.1:41231/", true},
		"another host":                 {"http://127.0.0.1:10246/", "http://10.0.0.1:10246/", false},
		"any text":                     {"serving on …, ready", "serving on this machine, ready", true},
		"any text in the wrong place":  {"serving on …, ready", "serving on this machine", false},
		"letters of expressions":       {"a+b (c) [d]", "a+b (c) [d]", true},
		"expressions are not followed": {"a.c", "abc", false},
		"any lines":                    {"a\n...\nd", "a\nb\nc\nd", true},
		"no lines":                     {"a\n...\nd", "a\nd", true},
		"any lines to the end":         {"a\n...", "a\nb\nc", true},
		"any lines from the start":     {"...\nc", "a\nb\nc", true},
		"any lines, then another":      {"a\n...\nd", "a\nb\nc", false},
		"any lines, and one repeated":  {"...\nb\nc", "b\nb\nc", true},
		"any lines twice":              {"...\nb\n...\nd", "a\nb\nc\nb\nd", true},
		"any lines twice, one missing": {"...\nb\n...\ne", "a\nb\nc\nb\nd", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Output(test.want, test.got)
			if test.matches {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, indentLines(test.want))
			require.ErrorContains(t, err, indentLines(test.got))
		})
	}
}
