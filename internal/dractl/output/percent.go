package output

import (
	"fmt"
	"math"
)

// Percent rounds, but never to 0 or 100 percent.
func Percent(part float64) string {
	whole := math.Round(part * 100)
	switch {
	case part > 0 && whole == 0:
		return "<1%"
	case part < 1 && whole == 100:
		return ">99%"
	}
	return fmt.Sprintf("%.0f%%", whole)
}
