package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// olderKwok is the kwok component for a kwok that is older than kwokctl. kwokctl
// writes Stages in the form of its own version, which older ones misread, so this
// component has the files as they are.
func (s settings) olderKwok(o kwokctlOptions) (component, error) {
	args := []string{
		"--manage-all-nodes=true",
		"--kubeconfig=" + s.Kubeconfig(),
		"--tls-cert-file=" + s.statePath("pki", "admin.crt"),
		"--tls-private-key-file=" + s.statePath("pki", "admin.key"),
		"--node-name=localhost",
		"--node-port=" + strconv.Itoa(o.KwokControllerPort),
		"--server-address=" + o.BindAddress + ":" + strconv.Itoa(o.KwokControllerPort),
		"--node-lease-duration-seconds=200", // as long as kwokctl has it
	}
	files, err := s.stageFiles()
	if err != nil {
		return component{}, err
	}
	for _, file := range files {
		args = append(args, "--config="+file)
	}
	for _, kind := range o.EnableCRDs {
		args = append(args, "--enable-crds="+kind)
	}
	return component{
		Name:    Kwok,
		Links:   []string{APIServer},
		Binary:  s.pathOf("bin", Kwok),
		Args:    args,
		WorkDir: s.statePath(),
		Ports:   []port{{Port: o.KwokControllerPort}},
	}, nil
}

// stageFiles are the user's files, with the default Stages unless the user has
// Stages, be it in files or in the cluster.
func (s settings) stageFiles() ([]string, error) {
	const stage = "Stage"
	if slices.Contains(s.options.EnableCRDs, stage) {
		return s.options.Config, nil
	}
	for _, file := range s.options.Config {
		has, err := hasKind(file, stage)
		if err != nil {
			return nil, err
		}
		if has {
			return s.options.Config, nil
		}
	}
	return append([]string{s.programs.Stages}, s.options.Config...), nil
}

// hasKind says whether one of the documents in a file is of that kind.
func hasKind(file, kind string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, fmt.Errorf("open configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	for documents := yaml.NewDecoder(f); ; {
		var document struct {
			Kind string `yaml:"kind"`
		}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read configuration %s: %w", file, err)
		}
		if document.Kind == kind {
			return true, nil
		}
	}
}
