// Package gotemplate compiles and renders Go templates that are fields of documents. In go a field
// and what it may read, out comes the rendered text, or an error of the field. It bounds what
// rendering may cost, renders the same text from the same data each time, and knows nothing of
// devices, Nodes or Pods.
package gotemplate
