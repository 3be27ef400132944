package drivers

import (
	"path/filepath"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kwok-dra/kwok-dra/test/drivers/file"
)

// rollingUpdate: of two instances of a driver the newest serves. When it goes, the older one takes over,
// and the slices stay.
func rollingUpdate(s *scene) {
	const node = "rolling"
	instance := func(name string) func(*file.Options) {
		return func(o *file.Options) { o.Instance = name }
	}
	one := s.newDriver(node, instance("one"))
	before := one.published()
	two := s.start(node, instance("two"))
	s.runs("first", node)
	require.Equal(s, []string{getInfo, notify, prepare + " first"}, two.since(0))

	// The slices of a driver that stops later are wiped later.
	gone := s.newDriver("gone")
	two.Stop()
	gone.Stop()
	s.runs("second", node)
	s.gone("first", node)
	require.Equal(s, []string{getInfo, notify, prepare + " second", unprepare + " first"}, one.since(0))

	three := s.start(node, instance("three"))
	one.Stop()
	s.runs("third", node)
	s.gone("second", node)
	require.Equal(s, []string{getInfo, notify, prepare + " third", unprepare + " second"}, three.since(0))
	require.Len(s, one.since(0), 4)
	gone.wiped()
	require.Equal(s, before, three.published())
}

// longNames: a node with a name like those of clouds has room for the sockets of rolling updates, which have the
// UID of a Pod in their names.
func longNames(s *scene) {
	const node, driver = "gke-cluster-1-gpu-pool-1a2b3c4d-x9", "file.example.com"
	s.newNodeOf(node, driver)
	root, err := filepath.EvalSymlinks(filepath.Join(s.plugins, node))
	require.NoError(s, err)
	instance := func(o *file.Options) {
		o.Name, o.Instance = driver, string(uuid.NewUUID())
		o.Registry, o.Plugins, o.CDI = filepath.Join(root, "plugins_registry"), filepath.Join(root, "plugins"), filepath.Join(root, "cdi")
	}
	one := s.start(node, instance)
	two := s.start(node, instance)
	s.runs("first", node)
	require.Equal(s, []string{getInfo, notify, prepare + " first"}, two.since(0))
	two.Stop()
	s.runs("second", node)
	require.Equal(s, []string{getInfo, notify, prepare + " second"}, one.since(0))
}
