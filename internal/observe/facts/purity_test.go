package facts

import (
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/testing/purity"
)

func TestFactsCallNobody(t *testing.T) {
	t.Parallel()
	purity.RequirePlans(t)
}
