// Package adapters turns other programs' configuration of fake DRA drivers into
// ResourcePoolTemplates, and says what the status of their kinds looks like. No other package knows
// their formats.
//
// It knows three: the ConfigMap dra-kwok-configmap, Karpenter's DRAConfig
// (test.karpenter.sh/v1alpha1) and Karpenter's NodeOverlay (karpenter.sh/v1alpha1). Each adapter is
// a pure function of a document. Its templates are valid, and its errors name the fields of the
// document rather than those of the templates.
//
// Texts in foreign documents are not Go templates: "{{" stands for itself.
package adapters
