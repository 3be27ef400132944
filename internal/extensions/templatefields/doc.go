// Package templatefields refuses Go templates that read fields which do not exist. In come a template and a
// sample of its data; out comes the first such field, with the one that was probably meant. Without it, they
// are refused when they are rendered for a Node.
package templatefields
