package pod

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/dractl/screen"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// printView prints the tables of each container that have rows.
func (v *view) printView(out io.Writer, format output.Format) error {
	for i := range v.Containers {
		container := &v.Containers[i]
		kind, before := "container", ""
		if container.Init {
			kind = "init container"
		}
		if i > 0 {
			before = "\n"
		}
		tables := slices.DeleteFunc(containerTables(container), func(table *output.Rows) bool { return len(table.Cells) == 0 })
		after := ""
		if len(tables) > 0 {
			after = "\n"
		}
		if _, err := fmt.Fprintf(out, "%s%s %s\n%s", before, kind, container.Name, after); err != nil {
			return err
		}
		if err := output.Tables(tables).Print(out, output.Layout{Format: format, Width: screen.Width(out)}); err != nil {
			return err
		}
		if err := printMetadata(out, container.MetadataFiles); err != nil {
			return err
		}
	}
	return nil
}

// printMetadata prints files with device metadata, without the control characters that could move the
// cursor: drivers write the files.
func printMetadata(out io.Writer, files []containerview.MetadataFile) error {
	removeControl := func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}
	for _, file := range files {
		if _, err := fmt.Fprintf(out, "\nMETADATA %s\n%s", file.Path, strings.Map(removeControl, file.Content)); err != nil {
			return err
		}
	}
	return nil
}

func containerTables(container *containerview.Container) []*output.Rows {
	env := &output.Rows{Columns: []output.Column{{Name: "variable"}, {Name: "value"}}}
	for _, variable := range container.Env {
		name, value, _ := strings.Cut(variable, "=")
		env.Add(name, value)
	}
	mounts := &output.Rows{Columns: []output.Column{{Name: "mount"}, {Name: "of"}, {Name: "options"}, {Name: "type", Wide: true}}}
	for i := range container.Mounts {
		mount := &container.Mounts[i]
		mounts.Add(mount.ContainerPath, mount.HostPath, output.OrNone(mount.Options...), output.OrNone(mount.Type))
	}
	nodes := &output.Rows{Columns: []output.Column{
		{Name: "device node"}, {Name: "of"}, {Name: "type"}, {Name: "major"}, {Name: "minor"}, {Name: "permissions"},
	}}
	for i := range container.DeviceNodes {
		addDeviceNode(nodes, &container.DeviceNodes[i])
	}
	devices := &output.Rows{Columns: []output.Column{
		{Name: "device"},
		{Name: "driver"},
		{Name: "pool", Wide: true},
		{Name: "claim"},
		{Name: "request"},
		{Name: "access", Wide: true},
		{Name: "share", Wide: true},
		{Name: "consumes", Wide: true},
	}}
	for i := range container.Devices {
		device := &container.Devices[i]
		access := "normal"
		if device.AdminAccess {
			access = "admin"
		}
		var consumes []string
		for _, name := range slices.Sorted(maps.Keys(device.ConsumedCapacity)) {
			amount := device.ConsumedCapacity[name]
			consumes = append(consumes, fmt.Sprintf("%s=%s", name, amount.String()))
		}
		devices.Add(device.Device, device.Driver, device.Pool, device.Claim, device.Request, access, output.OrNone(string(device.ShareID)), output.OrNone(consumes...))
	}
	return []*output.Rows{env, mounts, nodes, devices}
}

func addDeviceNode(rows *output.Rows, node *v1alpha1.DeviceNode) {
	number := func(n *intstr.IntOrString) string {
		if n == nil {
			return output.None
		}
		return n.String()
	}
	rows.Add(node.Path, cmp.Or(node.HostPath, node.Path), output.OrNone(node.Type), number(node.Major), number(node.Minor), output.OrNone(node.Permissions))
}
