// Package sbom lists the modules that programs consist of, in CycloneDX 1.6. They
// are those that the linker has recorded in the programs themselves.
package sbom

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kwok-dra/kwok-dra/test/tools/release/source"
)

// Program is a program and what it consists of.
type Program struct {
	name    string
	modules []module
}

// module is a Go module, or the standard library.
type module struct {
	path, version string
	// sum is the checksum in go.sum.
	sum string
}

// Read reads what the linker has recorded in a program.
func Read(name, file string) (*Program, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the modules of %s: %w", name, err)
	}
	program := &Program{name: name}
	for _, dependency := range info.Deps {
		program.modules = append(program.modules, moduleOf(dependency))
	}
	library := module{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}
	program.modules = append(program.modules, library)
	return program, nil
}

func moduleOf(dependency *debug.Module) module {
	if dependency.Replace != nil {
		dependency = dependency.Replace
	}
	return module{path: dependency.Path, version: dependency.Version, sum: dependency.Sum}
}

// packageURL is the package URL, by which tools know a module.
func (m module) packageURL() string {
	return "pkg:golang/" + m.path + "@" + strings.ReplaceAll(m.version, "+", "%2B")
}

// Encode makes the document for programs of a source. A program may be there once
// for each platform.
func Encode(s *source.Source, programs []*Program) ([]byte, error) {
	all := map[string]module{}
	uses := map[string]map[string]bool{}
	for _, program := range programs {
		if uses[program.name] == nil {
			uses[program.name] = map[string]bool{}
		}
		for _, module := range program.modules {
			all[module.packageURL()] = module
			uses[program.name][module.packageURL()] = true
		}
	}
	whole := component{
		Type: "application", Ref: "kwok-dra", Name: "kwok-dra", Version: s.Version, Licenses: ours,
		URL: module{path: "github.com/kwok-dra/kwok-dra", version: s.Version}.packageURL(),
	}
	document := document{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Specification: "1.6", Version: 1,
		Metadata: metadata{Timestamp: s.Date.Format(time.RFC3339), Component: whole},
	}
	var refs []string
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		ref := "program/" + name
		refs = append(refs, ref)
		document.Components = append(document.Components, component{Type: "application", Ref: ref, Name: name, Version: s.Version, Licenses: ours})
		document.Dependencies = append(document.Dependencies, dependency{ref, slices.Sorted(maps.Keys(uses[name]))})
	}
	document.Dependencies = append(document.Dependencies, dependency{whole.Ref, refs})
	for _, url := range slices.Sorted(maps.Keys(all)) {
		document.Components = append(document.Components, all[url].toComponent())
	}
	document.Serial = "urn:uuid:" + serialNumber(s, slices.Sorted(maps.Keys(all)))
	return encodeDocument(document)
}

func encodeDocument(document document) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(document)
	return text.Bytes(), err
}

// serialNumber is the number of a document, which follows from what is in it.
func serialNumber(s *source.Source, urls []string) string {
	content := strings.Join(append([]string{s.Version, s.Revision}, urls...), "\n")
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/kwok-dra/kwok-dra\n"+content)).String()
}
