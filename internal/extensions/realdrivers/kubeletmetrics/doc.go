// Package kubeletmetrics has the kubelet's own metrics of DRA, with its names, labels and buckets (pkg/kubelet/metrics in
// Kubernetes 1.36), so that queries for real kubelets find them. They aggregate all fake nodes: no query is by node, and
// histograms of 10,000 nodes would be a million series.
package kubeletmetrics
