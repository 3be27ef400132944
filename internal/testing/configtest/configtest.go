// Package configtest makes configuration for tests.
package configtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

// SetOf is the configuration that the documents make.
func SetOf(t testing.TB, documents string) *config.Set {
	t.Helper()
	decoded, err := config.Decode("test", []byte(documents))
	require.NoError(t, err)
	set, err := config.NewSet(decoded)
	require.NoError(t, err)
	return set
}

// Replace has a store have those documents.
func Replace(t testing.TB, store *config.Store, documents string) {
	t.Helper()
	decoded, err := config.Decode("test", []byte(documents))
	require.NoError(t, err)
	require.NoError(t, store.Replace("test", decoded))
}
