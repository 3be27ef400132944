// Package browser tests the sidecar's page in a real browser, on fleets that are
// made up. With $PICTURES they keep pictures in that directory, and with $AXE, the path of
// axe.min.js of the npm package axe-core, that judges the page too.
package browser
