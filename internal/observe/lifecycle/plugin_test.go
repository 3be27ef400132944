package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestPluginOf(t *testing.T) {
	t.Parallel()
	node := claimstest.NewNode("n")
	require.Equal(t, PluginUp, PluginOf(node))
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse},
		{Type: v1alpha1.PluginRegistered, Status: corev1.ConditionUnknown, Reason: v1alpha1.PluginCrashed},
	}
	require.Equal(t, PluginSilent, PluginOf(node))
	node.Status.Conditions[1].Reason = "Other"
	require.Equal(t, PluginGone, PluginOf(node))
}
