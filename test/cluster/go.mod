module github.com/kwok-dra/kwok-dra/test/cluster

go 1.26.0

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/mod v0.42.0 // indirect
)
