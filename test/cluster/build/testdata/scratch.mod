module scratch

go 1.26.0

godebug default=go1.26

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/blang/semver/v4 v4.0.0
	github.com/old/fork v1.0.0
	k8s.io/api v0.36.3
	k8s.io/kube-openapi v0.0.0-20260317180543-43fb72c5454a
	k8s.io/kubernetes v1.36.3
	k8s.io/published v0.36.1
	k8s.io/utils v0.0.0 // indirect
)

replace k8s.io/api => k8s.io/api v0.36.3

replace github.com/old/fork => github.com/new/fork v1.2.3
