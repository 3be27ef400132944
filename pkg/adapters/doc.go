// Package adapters turns other people's configuration of fake DRA drivers into
// ResourcePoolTemplates. Nothing past it knows their formats.
//
// It knows three: the ConfigMap dra-kwok-configmap, Karpenter's DRAConfig
// (test.karpenter.sh/v1alpha1) and Karpenter's NodeOverlay
// (karpenter.sh/v1alpha1). All three are pure functions of a document. What they
// make passes the validation of ResourcePoolTemplates, and their errors name the
// fields of the document that they were given, not those of the templates.
//
// Texts in foreign documents are no Go templates: "{{" stands for itself.
package adapters
