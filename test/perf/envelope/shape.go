package main

// shape is what a cluster has, and what the Pods of a round ask for. Two points of equal
// shapes are the same point.
type shape struct {
	Nodes int `json:"nodes"`
	// Devices are those of a node, of all drivers together.
	Devices int `json:"devicesPerNode"`
	// Slices are those of a pool that have devices.
	Slices     int `json:"slicesPerPool"`
	Attributes int `json:"attributesPerDevice"`
	// Drivers have a pool each on each node. Pods ask the first one.
	Drivers int `json:"drivers"`
	// Counters are those that each device consumes of its pool's counter set.
	Counters int `json:"countersPerDevice"`
	// Shares are how many claims a device is for.
	Shares int `json:"sharesPerDevice"`
	// Filled is how much of the devices of each node is allocated beforehand, in percent.
	Filled int `json:"filledPercent"`
	// Sidecar is an index of sidecars.
	Sidecar int `json:"sidecar"`

	Pods             int `json:"pods"`
	Requests         int `json:"requestsPerClaim"`
	DevicesByRequest int `json:"devicesPerRequest"`
	// Selectors are those of a request beside that of its class.
	Selectors int `json:"selectorsPerRequest"`
	// Matched is over how many devices of a request a constraint goes.
	Matched int `json:"matchedDevices"`
	// Alternatives are those of a request, of which only the last is to be had.
	Alternatives int `json:"alternatives"`
}

// baseShape is the point that all dimensions go through.
func baseShape() shape {
	return shape{Nodes: 50, Devices: 16, Slices: 1, Attributes: 8, Drivers: 1, Shares: 1, Pods: 100, Requests: 1, DevicesByRequest: 1}
}

// devicesOfFirst are the devices of a node that Pods may get.
func (s shape) devicesOfFirst() int { return s.Devices / s.Drivers }

// filledDevices are those of each node that are allocated beforehand.
func (s shape) filledDevices() int { return s.devicesOfFirst() * s.Filled / 100 }

// devicesByClaim are how many devices a Pod gets.
func (s shape) devicesByClaim() int { return s.Requests * max(s.DevicesByRequest, s.Matched) }

// dimension is one way to be larger than the base point.
type dimension struct {
	name, unit string
	points     []int
	set        func(s *shape, value int)
	// since is the minor version of Kubernetes from which on it can be measured.
	since int
}

// dimensions are what the envelope extends along. Each has the value of the base point
// among its points, or 0 or 1, which is the same.
var dimensions = []dimension{
	{name: "nodes", unit: "nodes", points: []int{10, 50, 150, 400}, set: func(s *shape, value int) { s.Nodes = value }},
	{name: "pods", unit: "Pods at once", points: []int{25, 100, 400, 800}, set: func(s *shape, value int) { s.Pods = value }},
	{name: "devices", unit: "devices per node", points: []int{4, 16, 64, 128}, set: func(s *shape, value int) { s.Devices = value }},
	{name: "slices", unit: "slices per pool", points: []int{1, 2, 4, 8}, set: func(s *shape, value int) { s.Slices = value }},
	{name: "attributes", unit: "attributes per device", points: []int{2, 8, 30}, set: func(s *shape, value int) { s.Attributes = value }},
	{name: "requests", unit: "requests per claim", points: []int{1, 2, 4}, set: func(s *shape, value int) { s.Requests = value }},
	{name: "count", unit: "devices per request", points: []int{1, 2, 4}, set: func(s *shape, value int) { s.DevicesByRequest = value }},
	{name: "selectors", unit: "CEL selectors per request", points: []int{0, 1, 4, 16}, set: func(s *shape, value int) { s.Selectors = value }},
	{name: "match", unit: "devices under matchAttribute", points: []int{0, 1, 2, 4}, set: func(s *shape, value int) { s.Matched = value }},
	{name: "alternatives", unit: "prioritized alternatives", points: []int{0, 1, 3, 8}, set: func(s *shape, value int) { s.Alternatives = value }},
	{name: "drivers", unit: "drivers", points: []int{1, 2, 4}, set: func(s *shape, value int) { s.Drivers = value }},
	{name: "counters", unit: "counters per device", points: []int{0, 1, 4, 16}, set: func(s *shape, value int) { s.Counters = value }, since: 35},
	{name: "shares", unit: "shares per device", points: []int{1, 2, 4, 8}, set: func(s *shape, value int) { s.Shares = value }},
	{name: "filled", unit: "% of devices allocated before", points: []int{0, 50, 90}, set: func(s *shape, value int) { s.Filled = value }},
	{name: "sidecar", unit: "without kwok-dra, with it, with --node-load", points: []int{0, 1, 2}, set: func(s *shape, value int) { s.Sidecar = value }},
}

// shapeAt returns the base point with another value of the dimension.
func (d *dimension) shapeAt(value int) shape {
	s := baseShape()
	d.set(&s, value)
	return s
}
