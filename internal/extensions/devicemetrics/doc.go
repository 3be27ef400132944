// Package devicemetrics serves what devices do as metrics: GPUs of NVIDIA as dcgm-exporter names
// them, and other devices under names of kwok-dra. What a device does is simulated by
// annotations of its Pods. A scrape writes as it reads, so that a large fleet takes little
// memory, and without scrapes nothing is kept.
package devicemetrics
