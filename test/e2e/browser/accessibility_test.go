package browser

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoles: a screen reader is told what each thing is, and where in the whole.
func TestRoles(t *testing.T) {
	t.Parallel()
	f := newMIGFleet()
	f.addNICs()
	b := open(t, f.serve(t), 1280, 900)
	b.wait(`document.querySelectorAll("#canvas .box").length === 8`)
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas [role=gridcell], #canvas [role=rowheader]")].every((cell) => cell.closest("[role=row]"))`))
	require.True(t, eval[bool](b, `[...document.querySelectorAll("#canvas .cell")].every((cell) => cell.role === "gridcell" && cell.ariaLabel)`))
	require.Equal(t, "grid", eval[string](b, `document.getElementById("canvas").parentElement.role`))
	require.Equal(t, "mig-0, 8 × NVIDIA H100 80GB HBM3, 80Gi · p5.48xlarge", eval[string](b, `[...document.querySelectorAll("[role=rowheader]")].at(-1).ariaLabel`))
	rows := eval[[]int](b, `[...document.querySelectorAll("[aria-rowindex]")].map((row) => Number(row.getAttribute("aria-rowindex"))).sort((a, b) => a - b)`)
	require.Equal(t, 1, rows[0])
	require.Equal(t, len(rows), rows[len(rows)-1])
	require.Equal(t, len(rows), eval[int](b, `Number(document.getElementById("grid").getAttribute("aria-rowcount"))`))
	b.requireNoErrors()
}
