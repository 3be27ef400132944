package e2e

import (
	"encoding/json"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/kwok/options"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/kwok-dra/kwok-dra/pkg/templatenode"
	"github.com/kwok-dra/kwok-dra/test/karpenter/instancetypes"
)

// told are the devices that Karpenter knew before it made a node.
func (w *world) told(node *corev1.Node) []*cloudprovider.ResourceSliceTemplate {
	w.Helper()
	types, err := kwok.ConstructInstanceTypes(options.ToContext(w.Context(), &options.Options{InstanceTypesFilePath: instanceTypes()}))
	require.NoError(w, err)
	i := slices.IndexFunc(types, func(it *cloudprovider.InstanceType) bool {
		return it.Name == node.Labels[corev1.LabelInstanceTypeStable]
	})
	text, err := w.cluster.Kubectl(w.Context(), "get", "nodepool", node.Labels[karpenterv1.NodePoolLabelKey], "-o", "json")
	require.NoError(w, err)
	var pool karpenterv1.NodePool
	require.NoError(w, json.Unmarshal([]byte(text), &pool))
	read, err := templatenode.ReadTemplates(w.Context(), templates()...)
	require.NoError(w, err)
	made, err := instancetypes.NewDevices(w.client, read).Of(w.Context(), &pool, types[i])
	require.NoError(w, err)
	return made
}
