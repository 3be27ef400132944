package devicemetrics

import (
	"math"
	"strings"
	"time"
)

// Family is a metric of devices.
type Family struct {
	Name, Help string
	// Labels are those that it may have.
	Labels []string

	value func(r *reading) float64
	of    func(d *device) bool
}

var (
	nvidiaLabels = []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "Hostname", "container", "namespace", "pod"}
	otherLabels  = []string{"node", "driver", "pool", "device", "container", "namespace", "pod"}
)

// Families returns the metrics, in the order in which they are written.
func Families() []Family {
	return []Family{
		{"DCGM_FI_DEV_SM_CLOCK", "Clock of the multiprocessors, in MHz.", nvidiaLabels, (*reading).clockMegahertz, isWholeGPU},
		{"DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU, in degrees Celsius.", nvidiaLabels, (*reading).temperatureCelsius, isWholeGPU},
		{"DCGM_FI_DEV_POWER_USAGE", "Power that the board draws, in watts.", nvidiaLabels, (*reading).powerWatts, isWholeGPU},
		{"DCGM_FI_DEV_GPU_UTIL", "How busy the GPU is, in percent.", nvidiaLabels, func(r *reading) float64 { return math.Round(r.busy) }, isWholeGPU},
		{"DCGM_FI_DEV_MEM_COPY_UTIL", "How busy the memory of the GPU is, in percent.", nvidiaLabels, func(r *reading) float64 { return math.Round(r.busy / 2) }, isWholeGPU},
		{"DCGM_FI_DEV_XID_ERRORS", "Code of the last XID error, or 0.", nvidiaLabels, func(r *reading) float64 { return r.xid }, isWholeGPU},
		{"DCGM_FI_DEV_FB_FREE", "Memory of the GPU or its partition that is free, in MiB.", nvidiaLabels, func(r *reading) float64 { return toMebibytes(r.free) }, isNVIDIA},
		{"DCGM_FI_DEV_FB_USED", "Memory of the GPU or its partition that is used, in MiB.", nvidiaLabels, func(r *reading) float64 { return toMebibytes(r.used) }, isNVIDIA},
		{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "How busy the GPU or its partition is, from 0 to 1.", nvidiaLabels, func(r *reading) float64 { return r.busy / 100 }, isNVIDIA},
		{"kwok_dra_device_utilization_ratio", "How busy a device is that is no GPU of NVIDIA, from 0 to 1.", otherLabels, func(r *reading) float64 { return r.busy / 100 }, isOther},
		{"kwok_dra_device_memory_used_bytes", "Memory that is used of a device that is no GPU of NVIDIA, where it has any.", otherLabels, func(r *reading) float64 { return math.Round(r.used) }, isOtherWithMemory},
		{"kwok_dra_device_memory_size_bytes", "Memory of a device that is no GPU of NVIDIA, where it has any.", otherLabels, func(r *reading) float64 { return r.memory }, isOtherWithMemory},
		{"kwok_dra_device_healthy", "1 for a device that is no GPU of NVIDIA, and 0 if a taint keeps Pods away from it.", otherLabels, (*reading).healthValue, isOther},
	}
}

// Omitted is the metric of devices that are left out.
var Omitted = Family{Name: "kwok_dra_device_metrics_omitted_devices", Help: "Published devices that /metrics/devices leaves out, beyond the first 10,000. /metrics/nodes/NODE/devices has all of a node."}

func isNVIDIA(d *device) bool { return d.kind != other }

// isWholeGPU selects devices for metrics that DCGM does not have of partitions.
func isWholeGPU(d *device) bool { return d.kind == nvidiaGPU }

func isOther(d *device) bool { return d.kind == other }

func isOtherWithMemory(d *device) bool { return d.kind == other && d.memory > 0 }

// reading is what a device does for a Pod, or for none.
type reading struct {
	*device

	labels string
	// busy is in percent, and used and free are in bytes.
	busy, used, free float64
}

// appendReadings appends a reading for each Pod that has the device, or one reading if no Pod has it.
func (d *device) appendReadings(now time.Time, readings []reading) []reading {
	first, free := len(readings), d.memory
	for i := range d.users {
		u, r := &d.users[i], reading{device: d, labels: d.users[i].labels}
		if !u.started.IsZero() {
			since := max(0, now.Sub(u.started)) // clocks differ
			r.busy, r.used = u.Utilization.At(100, u.seed, since), u.Memory.At(d.memory, u.seed, since)
		}
		free -= r.used
		readings = append(readings, r)
	}
	if len(d.users) == 0 {
		readings = append(readings, reading{device: d, labels: d.labels})
	}
	for i := first; i < len(readings); i++ {
		readings[i].free = max(0, free)
	}
	return readings
}

func (r *reading) healthValue() float64 {
	if r.xid != 0 {
		return 0
	}
	return 1
}

func toMebibytes(bytes float64) float64 { return math.Round(bytes / (1 << 20)) }

// board is the most that a kind of GPU draws, in watts, and its highest clock, in MHz.
type board struct{ watts, megahertz float64 }

// boards are selected by a part of the name of the model. The numbers are from NVIDIA's data sheets.
var boards = []struct {
	model string
	board
}{
	{"GB200", board{1200, 2062}},
	{"B200", board{1000, 1965}},
	{"H200", board{700, 1980}},
	{"H100", board{700, 1980}},
	{"A100", board{400, 1410}},
	{"L40S", board{350, 2520}},
	{"L4", board{72, 2040}},
	{"T4", board{70, 1590}},
}

func boardOf(model string) board {
	for _, known := range boards {
		if strings.Contains(model, known.model) {
			return known.board
		}
	}
	return board{300, 1500}
}

// The part of its power that an idle GPU draws, its idle clock, and its temperature when idle and busy.
const (
	idlePower     = 0.1
	idleMegahertz = 210
	idleDegrees   = 30
	busyDegrees   = 75
)

// scaleByLoad returns the value between idle and busy by how busy the device is.
func (r *reading) scaleByLoad(idle, busy float64) float64 {
	return math.Round(idle + (busy-idle)*r.busy/100)
}

func (r *reading) powerWatts() float64 { return r.scaleByLoad(idlePower*r.board.watts, r.board.watts) }

func (r *reading) temperatureCelsius() float64 { return r.scaleByLoad(idleDegrees, busyDegrees) }

// clockMegahertz is the highest clock as soon as there is work.
func (r *reading) clockMegahertz() float64 {
	if r.busy > 0 {
		return r.board.megahertz
	}
	return idleMegahertz
}
