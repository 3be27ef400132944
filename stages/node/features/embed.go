// Package features holds the Stage that declares the features of a node as its
// kubelet does.
package features

import (
	_ "embed"
)

// NodeDeclareFeatures is the Stage that writes status.declaredFeatures once the
// node is Ready.
//
//go:embed node-declare-features.yaml
var NodeDeclareFeatures string
