package extensions

import (
	"context"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/extensions/memorylimit"
)

// warnOfMemoryLimit says when GOMEMLIMIT is too low for the fleet.
func warnOfMemoryLimit() app.Extension {
	return app.Extension{Start: func(core *app.Core) {
		core.Add(app.Part{Run: func(ctx context.Context) { memorylimit.Warn(ctx, memorylimit.ReadCPUTime) }})
	}}
}
