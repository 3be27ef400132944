package instancetypes

import (
	"context"

	"github.com/kwok-dra/kwok-dra/pkg/config"
	"github.com/kwok-dra/kwok-dra/pkg/devices"
)

// ReadTemplates reads the ResourcePoolTemplates of files, which may be those that
// kwok-dra has with --config.
func ReadTemplates(ctx context.Context, paths ...string) ([]*devices.Template, error) {
	documents, err := config.ReadFiles(ctx, paths)
	if err != nil {
		return nil, err
	}
	store := config.NewStore(config.FilesCarrier)
	if err := store.Replace(config.FilesCarrier, documents); err != nil {
		return nil, err
	}
	return store.Current().Templates, nil
}
