package sbom

// document is the part of CycloneDX's JSON that is needed here.
type document struct {
	Schema        string       `json:"$schema"`
	Format        string       `json:"bomFormat"`
	Specification string       `json:"specVersion"`
	Serial        string       `json:"serialNumber"`
	Version       int          `json:"version"`
	Metadata      metadata     `json:"metadata"`
	Components    []component  `json:"components"`
	Dependencies  []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Licenses   []license  `json:"licenses,omitempty"`
	URL        string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type license struct {
	License licenseID `json:"license"`
}

type licenseID struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// ours is the licence of this project.
var ours = []license{{licenseID{"Apache-2.0"}}}

// toComponent is the module in the document.
func (m module) toComponent() component {
	made := component{Type: "library", Ref: m.packageURL(), Name: m.path, Version: m.version, URL: m.packageURL()}
	if m.sum != "" {
		made.Properties = []property{{Name: "go:sum", Value: m.sum}}
	}
	return made
}
