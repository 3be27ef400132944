package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// cdiName is the form of the name of a CDI device: vendor/class=name.
var cdiName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$`)

// prepareCDI prepares a claim, and returns it with the CDI devices in the answer.
func (w *world) prepareCDI(ctx context.Context) (*resourcev1.ResourceClaim, []string, error) {
	claims, found, err := w.prepareNew(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	var ids []string
	for _, d := range found[claims[0].UID] {
		ids = append(ids, d.GetCdiDeviceIds()...)
	}
	if len(ids) == 0 {
		return nil, nil, skipped("the driver names no CDI devices")
	}
	return claims[0], ids, nil
}

func cdiNames(ctx context.Context, w *world) error {
	_, ids, err := w.prepareCDI(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if !cdiName.MatchString(id) {
			errs = append(errs, fmt.Errorf("CDI device %q is not of the form vendor/class=name", id))
		}
	}
	return errors.Join(errs...)
}

func cdiResolves(ctx context.Context, w *world) error {
	_, ids, err := w.prepareCDI(ctx)
	if err != nil {
		return err
	}
	return unresolved(w.cdi(), ids)
}

// cdiRemoved compares the folder of specs before and after a claim. Those that the driver has for
// all claims are there before.
func cdiRemoved(ctx context.Context, w *world) error {
	before, err := specFiles(w.cdi())
	if err != nil {
		return err
	}
	prepared, _, err := w.prepareCDI(ctx)
	if err != nil {
		return err
	}
	if err := w.unprepare(ctx, prepared); err != nil {
		return err
	}
	now, err := specFiles(w.cdi())
	if err != nil {
		return err
	}
	if left := sets.List(now.Difference(before)); len(left) > 0 {
		return fmt.Errorf("after claim %s was unprepared, there is still %s", prepared.Name, filepath.Base(left[0]))
	}
	return nil
}

// cdiSpec is what is read of a file of the Container Device Interface.
type cdiSpec struct {
	Version string `json:"cdiVersion"`
	Kind    string `json:"kind"`
	Devices []struct {
		Name string `json:"name"`
	} `json:"devices"`
}

// specFiles are the files of CDI specs in a folder.
func specFiles(folder string) (sets.Set[string], error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("list CDI specs: %w", err)
	}
	files := sets.New[string]()
	for _, entry := range entries {
		if ending := filepath.Ext(entry.Name()); ending == ".json" || ending == ".yaml" {
			files.Insert(filepath.Join(folder, entry.Name()))
		}
	}
	return files, nil
}

// unresolved says which CDI devices no spec in a folder has, or is nil.
func unresolved(folder string, ids []string) error {
	files, err := specFiles(folder)
	if err != nil {
		return err
	}
	known := sets.New[string]()
	for file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CDI spec: %w", err)
		}
		var spec cdiSpec
		if err := yaml.Unmarshal(content, &spec); err != nil || spec.Version == "" {
			return fmt.Errorf("CDI spec %s has no cdiVersion, or is no YAML", filepath.Base(file))
		}
		for _, d := range spec.Devices {
			known.Insert(spec.Kind + "=" + d.Name)
		}
	}
	var errs []error
	for _, id := range ids {
		if !known.Has(id) {
			errs = append(errs, fmt.Errorf("no spec of %d in the folder of CDI specs has device %s", len(files), id))
		}
	}
	return errors.Join(errs...)
}
