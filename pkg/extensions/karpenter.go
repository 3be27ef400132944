package extensions

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kwok-dra/kwok-dra/pkg/adapters"
	"github.com/kwok-dra/kwok-dra/pkg/app"
	"github.com/kwok-dra/kwok-dra/pkg/classes"
	"github.com/kwok-dra/kwok-dra/pkg/config"
)

// karpenterFormats reads Karpenter's formats, and keeps the DeviceClasses that its ConfigMap needs.
type karpenterFormats struct {
	configMap string
	kinds     []string

	name *types.NamespacedName
}

func (k *karpenterFormats) extension() app.Extension {
	return app.Extension{
		FlagsAfter: "enable-crds",
		AddFlags: func(flags *pflag.FlagSet) {
			flags.StringVar(&k.configMap, "dra-kwok-configmap", k.configMap, "ConfigMap with the mappings of Karpenter's dra-kwok-driver, usually karpenter/dra-kwok-configmap, as NAMESPACE/NAME, watched live")
			flags.StringSliceVar(&k.kinds, "adapters", k.kinds, "custom resources of Karpenter to read, watched live: DRAConfig, NodeOverlay or both, separated by a comma")
		},
		SourceHint: "for Karpenter's, --dra-kwok-configmap or --adapters",
		Complete: func(options *app.Options) error {
			var err error
			if k.name, err = options.AddConfigMap("dra-kwok-configmap", k.configMap); err != nil {
				return err
			}
			kinds, err := config.AdaptedKinds(k.kinds...)
			if err != nil {
				return fmt.Errorf("parse --adapters: %w", err)
			}
			options.AddKinds(kinds...)
			options.LogAtStart("draKwokConfigMap", k.configMap, "adapters", k.kinds)
			return nil
		},
		Start: func(core *app.Core) {
			if k.name == nil {
				return
			}
			adapted := config.NewAdaptedConfigMap(core.Client, *k.name, core.Config, core.Owner.Recorder(core.Recorder), adapters.DRAKwokConfigMap)
			keeper := classes.New(core.Client, core.Config, core.Owner, core.Recorder)
			core.Add(app.Part{Run: adapted.Run}, app.Part{Run: keeper.Run, Synced: keeper.Synced(), Check: keeper.CheckHealth})
		},
	}
}
