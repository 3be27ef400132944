package file

import "path/filepath"

// cdiSpec is a file of the Container Device Interface.
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name           string   `json:"name"`
	ContainerEdits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env    []string   `json:"env,omitempty"`
	Mounts []cdiMount `json:"mounts,omitempty"`
}

type cdiMount struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Options       []string `json:"options,omitempty"`
}

// specOf is a spec without devices.
func specOf(driver string) *cdiSpec {
	return &cdiSpec{Version: "0.6.0", Kind: driver + "/file"}
}

// addDevice adds a device that mounts a file into a folder of the container.
func (s *cdiSpec) addDevice(name, path, folder string) {
	mounted := filepath.Join(folder, filepath.Base(path))
	s.Devices = append(s.Devices, cdiDevice{name, cdiEdits{
		Env:    []string{"FILE=" + mounted},
		Mounts: []cdiMount{{HostPath: path, ContainerPath: mounted, Options: []string{"ro", "bind"}}},
	}})
}
