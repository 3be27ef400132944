package inventory

import "github.com/prometheus/client_golang/prometheus"

// collector counts when it is asked, so that it costs nothing at other times.
type collector struct {
	source             *Source
	states, incomplete *prometheus.Desc
}

// NewCollector is the collector of the metrics of devices and pools.
func NewCollector(source *Source) prometheus.Collector {
	return &collector{
		source: source,
		states: prometheus.NewDesc("kwok_dra_device_states",
			"Devices that are published now, by driver and state: tainted (NoSchedule or NoExecute), or else prepared, allocated or free.", []string{"driver", "state"}, nil),
		incomplete: prometheus.NewDesc("kwok_dra_incomplete_pools",
			"Pools without all slices of their newest generation, by driver. The scheduler allocates nothing from them.", []string{"driver"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.states
	ch <- c.incomplete
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, driver := range c.source.Take().Drivers {
		for state, count := range driver.States {
			ch <- prometheus.MustNewConstMetric(c.states, prometheus.GaugeValue, float64(count), driver.Name, State(state).String())
		}
		ch <- prometheus.MustNewConstMetric(c.incomplete, prometheus.GaugeValue, float64(driver.IncompletePools), driver.Name)
	}
}
