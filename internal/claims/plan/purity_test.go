package plan

import (
	"testing"

	"github.com/kwok-dra/kwok-dra/internal/testing/purity"
)

func TestPlansCallNobody(t *testing.T) {
	t.Parallel()
	purity.RequirePlans(t)
}
