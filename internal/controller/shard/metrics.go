package shard

import "github.com/prometheus/client_golang/prometheus"

var (
	leadsDesc = prometheus.NewDesc("kwok_dra_leads", "1 if this replica is the leader, which acts for what belongs to no single node, else 0.", nil, nil)
	heldDesc  = prometheus.NewDesc("kwok_dra_held_nodes", "Nodes that this replica acts for because its kwok holds their leases. Only with --shard-mode=lease.", nil, nil)
)

// Describe implements prometheus.Collector.
func (o *Owner) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- leadsDesc
	descriptions <- heldDesc
}

// Collect implements prometheus.Collector.
func (o *Owner) Collect(metrics chan<- prometheus.Metric) {
	leads := 0.0
	if o.Leads() {
		leads = 1
	}
	metrics <- prometheus.MustNewConstMetric(leadsDesc, prometheus.GaugeValue, leads)
	if o.options.Mode == Lease {
		o.mu.RLock()
		defer o.mu.RUnlock()
		metrics <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, float64(len(o.leased)))
	}
}
