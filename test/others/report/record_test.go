package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKeep: a suite has one record for each minor version of Kubernetes, the latest, where the first one was.
func TestKeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	suite := readSuite(t)
	keep := func(name, kubernetes string, took time.Duration) {
		suite.Name, suite.Kubernetes, suite.Kwok = name, kubernetes, "0.8.0"
		record := NewRecord(suite, took)
		record.Title = "[The driver](#driver)"
		require.NoError(t, Keep(file, record))
	}
	keep("driver", "1.36.3", time.Minute)
	keep("other", "1.36.3", time.Minute)
	keep("driver", "1.37.2", time.Minute)
	keep("driver", "1.36.4", 90*time.Second)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	counted := `"passed": 1,"failed": 2,"skipped": 1,"leftOut": 1,`
	record := func(name, kubernetes, seconds string) string {
		return `{"suite": "` + name + `","title": "[The driver](#driver)","version": "v1.2.3","kubernetes": "` + kubernetes + `","kwok": "0.8.0",` + counted + `"seconds": ` + seconds + `}`
	}
	require.JSONEq(t, `[`+record("driver", "1.36.4", "90")+`,`+record("other", "1.36.3", "60")+`,`+record("driver", "1.37.2", "60")+`]`, string(written))

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	require.ErrorContains(t, Keep(file, Record{}), "read results "+file)
}
