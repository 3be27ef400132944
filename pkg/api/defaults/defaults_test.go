package defaults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func TestSetDefaults(t *testing.T) {
	t.Parallel()
	template := &v1alpha1.ResourcePoolTemplate{}
	SetResourcePoolTemplate(template)
	require.Equal(t, PoolName, template.Spec.PoolName)
	template.Spec.PoolName = "mine"
	SetResourcePoolTemplate(template)
	require.Equal(t, "mine", template.Spec.PoolName)

	configuration := &v1alpha1.KwokDRAConfiguration{}
	SetKwokDRAConfiguration(configuration)
	require.NotNil(t, configuration.Spec.PublishWhen, "a Node must be Ready")
	require.Nil(t, configuration.Spec.RetireWhen, "only deletion of the Node retires")
}
