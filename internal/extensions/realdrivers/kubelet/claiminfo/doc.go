// Package claiminfo records for which Pods the claims of a node are prepared, and with which devices. It stands in for the
// kubelet's claimInfoCache and its checkpoint, whose file format it has (claiminfo.go and state in pkg/kubelet/cm/dra).
package claiminfo
