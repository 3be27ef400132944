// Package documents reads the YAML and JSON documents that a user names with -f,
// and remembers where each is from.
package documents
