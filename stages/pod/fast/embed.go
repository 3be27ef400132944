// Package fast holds the Stage that makes Pods ready at once, those with claims
// when kwok-dra has prepared them.
package fast

import (
	_ "embed"
)

// PodReady is the Stage that takes the place of kwok's own pod-ready.
//
//go:embed pod-ready.yaml
var PodReady string
