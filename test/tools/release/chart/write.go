package chart

import (
	"fmt"
	"time"

	"github.com/kwok-dra/kwok-dra/test/tools/release/overlay"
	"github.com/kwok-dra/kwok-dra/test/tools/release/tarball"
)

// Write writes the archive of the chart.
func Write(c *overlay.Checkout, file, version string, date time.Time) error {
	files, err := Files(c, version)
	if err != nil {
		return fmt.Errorf("make the chart: %w", err)
	}
	return tarball.Write(file, files, date)
}
