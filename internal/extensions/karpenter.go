package extensions

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/internal/app"
	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/adapters"
	"github.com/kwok-dra/kwok-dra/internal/extensions/karpenter/classes"
)

// readKarpenterFormats reads Karpenter's formats, and keeps the DeviceClasses that its ConfigMap needs.
func readKarpenterFormats() app.Extension {
	var (
		configMap string
		kinds     []string
		name      *types.NamespacedName
	)
	return app.Extension{
		FlagsAfter:  "enable-crds",
		ClusterRole: "kwok-dra-karpenter",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&configMap, "dra-kwok-configmap", configMap, "ConfigMap with the mappings of Karpenter's dra-kwok-driver, usually karpenter/dra-kwok-configmap, as NAMESPACE/NAME, watched live")
			flags.StringSliceVar(&kinds, "adapters", kinds, "custom resources of Karpenter to read, watched live: DRAConfig, NodeOverlay or both, separated by a comma")
		},
		SourceHint: "for Karpenter's, --dra-kwok-configmap or --adapters",
		Complete: func(options *app.Options) error {
			var err error
			if name, err = options.AddConfigMap("dra-kwok-configmap", configMap); err != nil {
				return err
			}
			adapted, err := adapters.Kinds(kinds...)
			if err != nil {
				return fmt.Errorf("parse --adapters: %w", err)
			}
			options.Kinds = append(options.Kinds, adapted...)
			options.StartLog = append(options.StartLog, "draKwokConfigMap", configMap, "adapters", kinds)
			return nil
		},
		Start: func(core *app.Core) {
			if name == nil {
				return
			}
			adapted := config.NewAdaptedConfigMap(core.Client, *name, core.Config, core.Owner.Recorder(core.Recorder), adapters.DRAKwokConfigMap)
			keeper := classes.New(core.Client, core.Config, core.Owner, core.Recorder)
			core.Add(app.Part{Run: adapted.Run}, app.Part{Run: keeper.Run, Synced: keeper.Synced(), Check: keeper.CheckHealth})
		},
	}
}
