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

// TestPartOfSource: a part of the repository has the version of the module whose path it is below.
func TestPartOfSource(t *testing.T) {
	t.Parallel()
	const gomod = "module example.com/m\n\nrequire example.com/m/api v0.0.0-00010101000000-000000000000\n\nreplace example.com/m/api => ./api\n"
	got, err := scratchModule([]byte(gomod), module.Version{Path: "example.com/m", Version: "v1.2.3"}, "")
	require.NoError(t, err)
	require.Contains(t, string(got), "example.com/m/api v1.2.3")
	require.Contains(t, string(got), "replace example.com/m/api => example.com/m/api v1.2.3")
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
