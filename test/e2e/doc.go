// Package e2e holds the tests that prove on real clusters what kwok-dra promises:
// a real API server, scheduler, controller manager and kwok, and the sidecar as
// its own process. There is a package for each promise of the sidecar:
//
//   - publish: nodes get their ResourceSlices, which follow nodes and templates
//   - devices: what devices can do, from taints to partitions and shared pools
//   - prepare: claims of Pods are prepared and withdrawn, also over failures
//   - stages: with the project's Stages, Pods and claims change as recorded ones
//   - view: kubectl logs and kubectl exec show what containers have of their devices
//   - configuration: templates from files and custom resources, valid or not
//   - adapters: the configuration of Karpenter's fake devices
//   - profiles: every profile makes the devices that its sample claims
//   - validation: templates are refused exactly where the API server would refuse
//   - olderkwok: the oldest supported releases of kwok
//   - nodeload: fake nodes load the API server as a recorded kubelet and driver
//   - install: the manifests, applied as the guide says
//
// and one for each thing around it:
//
//   - dractl: the command line tool, and its scheduler beside kube-scheduler
//   - waiting: a corpus of Pods that wait, and why
//   - checkdriver: the contract test of DRA drivers, on a good one and broken ones
//   - checkscheduler: the contract test of schedulers, and its stories
//   - drivers/record: what a real driver does, recorded and played on another node
//   - docs: the commands of the documentation, in order
//   - browser: the page, in a real browser
//   - dashboards: the dashboards and alerts, with Prometheus' own engine
//   - helm: the chart, with Helm itself
//
// What the tests of the sidecar share is in package harness. This package has
// kubelet-specs.md, which names the test for each spec of the kubelet.
package e2e
