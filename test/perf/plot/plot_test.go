package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDraw reads the drawing as a viewer would: it is XML, with a point for each figure in
// each panel, and higher where the figure is.
func TestDraw(t *testing.T) {
	t.Parallel()
	one := Panel{Title: "<Pods>", Series: []Series{{Name: "old", X: []float64{550, 1100}, Y: []float64{550, 1100}}, {Name: "new & improved", X: []float64{550}, Y: []float64{0}}}}
	svg := Draw([]Panel{one, one}, "a <machine>")
	counts := map[string]int{}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
	require.Equal(t, 2, counts["g"])
	require.Equal(t, 6, counts["circle"])
	require.Contains(t, svg, "a &lt;machine&gt;")
	require.Contains(t, svg, "new &amp; improved")
	// The top of the axis is a tenth above the highest.
	require.Contains(t, svg, `points="170.0,116.4 290.0,52.7"`)
	require.NotContains(t, svg, "dasharray", "there is no limit")
}

func TestDrawOfNothing(t *testing.T) {
	t.Parallel()
	svg := Draw([]Panel{{Limit: 2, Series: []Series{{X: []float64{1}, Y: []float64{0}}}}, {}}, "")
	require.NotContains(t, svg, "NaN")
	require.Contains(t, svg, "dasharray")
	require.NotContains(t, svg, "tspan dx", "one series needs no name")
}
