package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"

	"github.com/kwok-dra/kwok-dra/test/cluster/build"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// kubeVirt has KubeVirt find the devices of a virtual machine by their metadata files.
var kubeVirt = suite{
	name:          "kubevirt",
	title:         `[KubeVirt's reader of device metadata](#kubevirt), a story of ours`,
	tests:         build.Tests{Module: module.Version{Path: "kubevirt.io/kubevirt", Version: "v1.9.0"}},
	containerView: true,
	install:       buildMetadataReader,
	stories: []story{
		{name: "KubeVirt finds the PCI addresses of its devices in the metadata files of the container", run: machineFindsDevices},
	},
}

// metadataFolder is where containers have the metadata of their devices (KEP-5304).
const metadataFolder = "/var/run/kubernetes.io/dra-device-attributes"

// metadataReader is the program with KubeVirt's reader, among the logs of the cluster, which go with it.
func metadataReader(w *world) string { return filepath.Join(w.Logs(), "kubevirt-reader") }

func buildMetadataReader(_ context.Context, w *world) (*installation, error) {
	return &installation{}, sidecar.Build(filepath.Join(sidecar.Root(), "test", "others", "kubevirt"), metadataReader(w), ".")
}

// machineFindsDevices copies the files that the container of a virtual machine has, and asks KubeVirt which
// devices they are.
func machineFindsDevices(ctx context.Context, w *world) error {
	return w.perform(ctx, filepath.Join(manifests("kubevirt"), "machine.yaml"), func() error {
		if _, err := w.Kubectl(ctx, "-n", storyNamespace, "wait", "--for=condition=Ready", "--timeout=1m", "pod/machine"); err != nil {
			return err
		}
		copied, err := os.MkdirTemp(w.Logs(), "metadata")
		if err != nil {
			return fmt.Errorf("make the folder of the metadata files: %w", err)
		}
		const byName, byTemplate, kept = "by-name", "by-template", "kept"
		for _, claim := range []string{path.Join("resourceclaims", kept), path.Join("resourceclaimtemplates", byTemplate)} {
			file := path.Join(claim, "card", "gpu.example.com-metadata.json")
			// kwok knows what a container has a moment after its Pod runs.
			if err := until(ctx, seen, func(ctx context.Context) error { return copyMetadata(ctx, w, file, copied) }); err != nil {
				return err
			}
		}
		want, err := allocatedAddresses(ctx, w)
		if err != nil {
			return err
		}
		for entry, claim := range map[string]string{byName: kept, byTemplate: ""} {
			// An error of the reader is in its output, which is no address.
			found, _ := exec.CommandContext(ctx, metadataReader(w), "-base", copied, "-entry", entry, "-claim", claim, "-request", "card").CombinedOutput()
			if address := strings.TrimSpace(string(found)); address == "" || address != want[entry] {
				return fmt.Errorf("find the device of entry %s: KubeVirt says %q, the API %q", entry, address, want[entry])
			}
		}
		return nil
	})
}

// copyMetadata copies a file from the container of the virtual machine.
func copyMetadata(ctx context.Context, w *world, name, to string) error {
	content, err := w.Kubectl(ctx, "-n", storyNamespace, "exec", "machine", "--", "cat", path.Join(metadataFolder, name))
	if err != nil {
		return err
	}
	file := filepath.Join(to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make the folder of a metadata file: %w", err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return fmt.Errorf("copy a metadata file: %w", err)
	}
	return nil
}

// allocatedAddresses are the PCI addresses of the devices that the claims of the virtual machine have, by the
// Pod's entries, as the API tells.
func allocatedAddresses(ctx context.Context, w *world) (map[string]string, error) {
	claims, err := w.objects(ctx, "resourceclaims")
	if err != nil {
		return nil, err
	}
	if err := prepared(claims, 2); err != nil {
		return nil, err
	}
	said, err := w.Kubectl(ctx, "get", "resourceslices", "-o", "json")
	if err != nil {
		return nil, err
	}
	var published struct {
		Items []struct {
			Spec struct {
				Pool    struct{ Name string }
				Devices []struct {
					Name       string
					Attributes map[string]struct{ String string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(said), &published); err != nil {
		return nil, fmt.Errorf("read the ResourceSlices: %w", err)
	}
	addresses := map[string]string{}
	for _, slice := range published.Items {
		for _, of := range slice.Spec.Devices {
			addresses[slice.Spec.Pool.Name+"/"+of.Name] = of.Attributes["resource.kubernetes.io/pciBusID"].String
		}
	}
	found := map[string]string{}
	for _, claim := range claims {
		entry := claim.Metadata.Annotations[podClaimAnnotation]
		if entry == "" {
			entry = "by-name"
		}
		has := claim.Status.Allocation.Devices.Results[0]
		found[entry] = addresses[has.Pool+"/"+has.Device]
	}
	return found, nil
}
