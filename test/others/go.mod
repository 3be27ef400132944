// A module of its own. Each suite is compiled in yet another one, with the versions that
// its own go.mod chooses: see test/cluster/build.
module github.com/kwok-dra/kwok-dra/test/others

go 1.26.6

require (
	github.com/k8stopologyawareschedwg/podfingerprint v0.2.3
	github.com/kwok-dra/kwok-dra/test v0.0.0-00010101000000-000000000000
	github.com/kwok-dra/kwok-dra/test/cluster v0.0.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.42.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/OneOfOne/xxhash v1.2.8 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/kwok-dra/kwok-dra => ../..
	github.com/kwok-dra/kwok-dra/test => ..
	github.com/kwok-dra/kwok-dra/test/cluster => ../cluster
)
