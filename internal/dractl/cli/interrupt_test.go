package cli

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestDropCanceled(t *testing.T) {
	t.Parallel()
	var handled []error
	handlers := dropCanceled([]utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) {
		handled = append(handled, err)
	}})
	broken := errors.New("broken")
	for _, err := range []error{&url.Error{Op: "Get", URL: "/api/v1/nodes?watch=true", Err: context.Canceled}, broken, nil} {
		for _, handle := range handlers {
			handle(t.Context(), err, "Failed to watch")
		}
	}
	require.Equal(t, []error{broken, nil}, handled)
}
