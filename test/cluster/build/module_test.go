package build

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
)

func TestScratchModule(t *testing.T) {
	t.Parallel()
	gomod, err := os.ReadFile("testdata/go.mod")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/scratch.mod")
	require.NoError(t, err)

	got, err := scratchModule(gomod, module.Version{Path: "k8s.io/kubernetes", Version: "v1.36.3"}, "v0.36.3")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestScratchModuleRefuses(t *testing.T) {
	t.Parallel()
	source := module.Version{Path: "example.com/m", Version: "v1.0.0"}
	tests := map[string]struct{ gomod, parts, want string }{
		"no go.mod":         {gomod: "modul example.com/m", parts: "v0.1.0", want: "parse go.mod of example.com/m@v1.0.0"},
		"unknown part":      {gomod: "module example.com/m\nrequire example.com/part v0.0.0\nreplace example.com/part => ./part\n", want: "require example.com/part: it is unreleased"},
		"no staged version": {gomod: "module example.com/m\nrequire example.com/part v0.0.0\nreplace example.com/part => ../part\n", want: "write scratch module for example.com/m@v1.0.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scratchModule([]byte(test.gomod), source, test.parts)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestStagingVersion(t *testing.T) {
	t.Parallel()
	require.Equal(t, "v0.36.3", stagingVersion("v1.36.3"))
	require.Equal(t, "v0.37.0-rc.1", stagingVersion("v1.37.0-rc.1"))
}
