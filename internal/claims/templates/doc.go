// Package templates answers for the DRA drivers that have templates. Claims show what the templates of their devices say,
// and a plugin is up, silent or gone as the Node's condition says. Nothing in this package reads or writes the API.
package templates
