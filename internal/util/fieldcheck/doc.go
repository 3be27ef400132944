// Package fieldcheck collects what is wrong with the fields of a document. In come a path and rules; out
// come errors that name the field, the value and what would be valid.
package fieldcheck
