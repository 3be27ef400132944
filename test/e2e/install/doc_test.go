// Package install proves that kwok-dra is installed as docs/guides/install.md says.
//
// There is neither a network nor a container engine, so two things are replaced,
// and nothing else:
//
//   - What the kustomizations take from other repositories is read from the Go
//     modules of the same repositories, see checkout.
//   - The Pods of the Deployments that are applied run as processes, see host: it
//     does what a kubelet would do, with the Pods that the real controllers and the
//     real scheduler make and bind.
package install
