package inventory

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// collector takes an inventory when it is scraped, if anything has changed since the last scrape.
type collector struct {
	source                                       *Source
	nodes, states, utilization, incomplete, gone *prometheus.Desc

	mu sync.Mutex
	// drivers are as of changes, and nil before the first time.
	drivers []Driver
	changes uint64
}

// NewCollector makes the collector of the metrics of devices and pools.
func NewCollector(source *Source) prometheus.Collector {
	return &collector{
		source: source,
		nodes:  prometheus.NewDesc("kwok_dra_nodes", "Fake nodes that there are now, with devices and without.", nil, nil),
		states: prometheus.NewDesc("kwok_dra_device_states",
			"Devices that are published now, by driver and state: tainted (NoSchedule or NoExecute), or else failing, prepared, allocated, blocked or free.", []string{"driver", "state"}, nil),
		utilization: prometheus.NewDesc("kwok_dra_device_utilization_ratio",
			"Part of a driver's devices that claims have now, from 0 to 1. All that draws on one counter set is one device, and of a shared device the largest part of its capacities counts.", []string{"driver"}, nil),
		incomplete: prometheus.NewDesc("kwok_dra_incomplete_pools",
			"Pools without all slices of their newest generation, by driver. The scheduler allocates nothing from them.", []string{"driver"}, nil),
		gone: prometheus.NewDesc("kwok_dra_gone_devices",
			"Devices that claims have and no slice publishes any more, by driver. No state counts them.", []string{"driver"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.nodes
	ch <- c.states
	ch <- c.utilization
	ch <- c.incomplete
	ch <- c.gone
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes := c.source.Changes(); c.drivers == nil || changes != c.changes {
		c.drivers, c.changes = c.source.Take().Drivers, changes
	}
	ch <- prometheus.MustNewConstMetric(c.nodes, prometheus.GaugeValue, float64(len(c.source.Nodes())))
	for _, driver := range c.drivers {
		for state, count := range driver.States {
			ch <- prometheus.MustNewConstMetric(c.states, prometheus.GaugeValue, float64(count), driver.Name, State(state).String())
		}
		ch <- prometheus.MustNewConstMetric(c.utilization, prometheus.GaugeValue, driver.Usage.Ratio(), driver.Name)
		ch <- prometheus.MustNewConstMetric(c.incomplete, prometheus.GaugeValue, float64(driver.IncompletePools), driver.Name)
		ch <- prometheus.MustNewConstMetric(c.gone, prometheus.GaugeValue, float64(driver.Gone), driver.Name)
	}
}
