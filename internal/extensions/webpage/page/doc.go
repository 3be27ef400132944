// Package page serves a page that shows the state of each device, and the JSON
// behind it. Without viewers it does nothing but remember what changes.
package page
