package view

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// nvidiaSMI is the program that lists GPUs. A container has it where a driver mounts it.
const nvidiaSMI = "nvidia-smi"

// gpu is a GPU of NVIDIA, or a partition of one.
type gpu struct {
	name, uuid, parent, profile, bus, driver, cuda string
	memory                                         int64
}

// gpusOf returns the GPUs of a container: devices with a uuid of NVIDIA.
func gpusOf(c *containerview.Container) []gpu {
	var all []gpu
	for i := range c.Devices {
		d := &c.Devices[i]
		found := gpu{
			name: attributeOf(d, "productName"), uuid: attributeOf(d, "uuid"), parent: attributeOf(d, "parentUUID"),
			profile: attributeOf(d, "profile"), bus: attributeOf(d, "resource.kubernetes.io/pciBusID"),
			driver: attributeOf(d, "driverVersion"), cuda: attributeOf(d, "cudaDriverVersion"),
		}
		if capacity, ok := d.Capacity["memory"]; ok {
			found.memory = capacity.Value.Value() >> 20
		}
		if found.isMIG() || strings.HasPrefix(found.uuid, "GPU-") {
			all = append(all, found)
		}
	}
	return all
}

func (g *gpu) isMIG() bool { return strings.HasPrefix(g.uuid, "MIG-") }

// attributeOf returns an attribute as text, or "".
func attributeOf(d *containerview.Device, name string) string {
	for _, key := range []string{name, d.Driver + "/" + name} {
		switch value := d.Attributes[resourcev1.QualifiedName(key)]; {
		case value.StringValue != nil:
			return *value.StringValue
		case value.VersionValue != nil:
			return *value.VersionValue
		case value.IntValue != nil:
			return strconv.FormatInt(*value.IntValue, 10)
		}
	}
	return ""
}

const notKnown = "N/A"

// smiList returns what nvidia-smi -L prints.
func smiList(gpus []gpu) string {
	var list strings.Builder
	boards, inBoard := 0, 0
	for i, g := range gpus {
		sameBoard := i > 0 && g.isMIG() && g.parent != "" && gpus[i-1].isMIG() && g.parent == gpus[i-1].parent
		if !sameBoard {
			uuid := g.uuid
			if g.isMIG() {
				uuid = cmp.Or(g.parent, notKnown)
			}
			fmt.Fprintf(&list, "GPU %d: %s (UUID: %s)\n", boards, cmp.Or(g.name, notKnown), uuid)
			boards, inBoard = boards+1, 0
		}
		if g.isMIG() {
			fmt.Fprintf(&list, "  MIG %-11s Device %2d: (UUID: %s)\n", g.profile, inBoard, g.uuid)
			inBoard++
		}
	}
	return cmp.Or(list.String(), "No devices found.\n")
}

// The columns of the table of nvidia-smi.
const (
	rule    = "+-----------------------------------------+------------------------+----------------------+\n"
	thick   = "|=========================================+========================+======================|\n"
	columns = "| %-39s | %22s | %20s |\n"
	whole   = "+-----------------------------------------------------------------------------------------+\n"
)

// smiTable returns what nvidia-smi prints. What nobody publishes is N/A: what a GPU does is not simulated.
func smiTable(gpus []gpu) string {
	if len(gpus) == 0 {
		return "No devices were found\n"
	}
	var table strings.Builder
	driver, cuda := cmp.Or(gpus[0].driver, notKnown), cmp.Or(shortVersion(gpus[0].cuda), notKnown)
	fmt.Fprintf(&table, whole+"| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n"+rule, driver, driver, cuda)
	fmt.Fprintf(&table, columns, "GPU  Name                 Persistence-M", "Bus-Id          Disp.A", "Volatile Uncorr. ECC")
	fmt.Fprintf(&table, columns, "Fan  Temp   Perf          Pwr:Usage/Cap", "Memory-Usage", "GPU-Util  Compute M.")
	fmt.Fprintf(&table, columns, "", "", "MIG M.")
	table.WriteString(thick)
	for i, g := range gpus {
		name, mig := cmp.Or(g.name, notKnown), "Disabled"
		if g.isMIG() {
			name, mig = strings.TrimPrefix(name, "NVIDIA ")+" MIG "+g.profile, "Enabled"
		}
		fmt.Fprintf(&table, columns, fmt.Sprintf("%3d  %-28.28s %5s", i, name, notKnown), cmp.Or(longBus(g.bus), notKnown)+" Off", notKnown)
		fmt.Fprintf(&table, columns, "N/A  N/A    N/A              N/A / N/A", fmt.Sprintf("%s / %dMiB", notKnown, g.memory), "N/A          Default")
		fmt.Fprintf(&table, columns, "", "", mig)
		table.WriteString(rule)
	}
	return table.String()
}

// shortVersion cuts off the patch level of a version.
func shortVersion(version string) string {
	parts := strings.Split(version, ".")
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// longBus returns the address of a PCI device with the long domain that the program prints.
func longBus(address string) string {
	if domain, rest, ok := strings.Cut(address, ":"); ok && len(domain) == 4 {
		return "0000" + strings.ToUpper(address[:len(domain)]+":"+rest)
	}
	return address
}

// nvidiaSMIFiles returns the files that the stand-in of the program prints, by name.
func nvidiaSMIFiles(c *containerview.Container) map[string]string {
	isMounted := slices.ContainsFunc(c.Mounts, func(m v1alpha1.Mount) bool { return path.Base(m.ContainerPath) == nvidiaSMI })
	if !isMounted {
		return nil
	}
	gpus := gpusOf(c)
	return map[string]string{nvidiaSMI: smiTable(gpus), nvidiaSMI + "-L": smiList(gpus)}
}
