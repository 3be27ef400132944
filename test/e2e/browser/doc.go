// Package browser tests the sidecar's page in a real browser, on fleets that are
// made up.
package browser
